/** Runs a process of the replay benchmark: it reads the recordings and replays the conversations that the parent sends, one at a time. */
import { conversationBody } from '../../src/cli/replay/conversation-body.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import { readRecording } from '../../src/replay/recording.ts';
import { type Played, replay } from '../../src/replay/replay.ts';
import { loadExactCounter } from '../../src/tokens/load-counter.ts';
import { longHorizon, readConversations } from './data.ts';
import { type BenchOptions, benchPolicies } from './policies.ts';

/** The conversation to replay. */
export type Task = { readonly id: string };

const options = JSON.parse(process.argv[2] ?? '') as BenchOptions;
const counter = await loadExactCounter('o200k_base');
const records = readConversations() ?? [];
const byId = new Map([...records, ...longHorizon(records)].map((record) => [record.id, record]));
const policies = benchPolicies(options, counter);

// A rejection ends this process, and the parent notices its exit.
process.on('message', (task: Task) => void replayOne(task).then((played) => process.send?.(played)));

function replayOne({ id }: Task): Promise<Played> {
  const record = byId.get(id)!;
  const marks = options.cacheTtl === '1h' ? { cache_control: { type: 'ephemeral', ttl: '1h' } } : {};
  const body = conversationBody(record, options.prefix, counter, marks);
  const coldAt = new Set(options.pauses ? record.coldAt : []);
  const recording = readRecording({ id, source: record.source, format: chat, body, coldAt }, counter);
  return replay(recording, policies, { window: options.window });
}
