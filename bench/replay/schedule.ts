/**
 * Which conversation is replayed next. Those of a source are played in their order until the recall tool was needed under each engine,
 * so that what an engine knows of earlier ones is the same in each run; then the longest first, as many at once as there are processes.
 */
import type { ConversationRecord } from '../../src/cli/replay/conversation-body.ts';
import { createNeededTools } from '../../src/replay/needed-tools.ts';
import type { Played } from '../../src/replay/replay.ts';
import type { Task } from './process.ts';

export interface Schedule {
  /** Waits while all that is left has to wait for what is being played; undefined when nothing is left. */
  next(): Promise<Task | undefined>;
  /** Takes in what came of one. */
  done(played: Played): void;
}

/** `engines`: names of those policies that are offered the recall tool by what came of earlier conversations. */
export function createSchedule(records: readonly ConversationRecord[], engines: readonly string[]): Schedule {
  const sizes = new Map(records.map(({ id, messages }) => [id, JSON.stringify(messages).length]));
  const waiting = [...Map.groupBy(records, ({ source }) => source)].map(([source, group]) => ({
    source,
    ids: group.map(({ id }) => id),
  }));
  const needed = createNeededTools();
  const playing = new Set<string>();
  const isKnown = (source: string) => engines.every((engine) => needed.of(source).has(engine));
  let changed = Promise.withResolvers<void>();

  function take(): Task | undefined {
    // What others wait for comes first.
    const open = waiting.filter(({ ids }) => ids.length > 0);
    const first = open.find(({ source }) => !isKnown(source) && !playing.has(source));
    if (first) {
      playing.add(first.source);
      return taskOf(first.source, first.ids.shift()!);
    }
    const [longest] = open
      .filter(({ source }) => isKnown(source))
      .flatMap(({ source, ids }) => ids.map((id) => ({ source, ids, id })))
      .toSorted((a, b) => sizes.get(b.id)! - sizes.get(a.id)!);
    if (!longest) return undefined;
    longest.ids.splice(longest.ids.indexOf(longest.id), 1);
    return taskOf(longest.source, longest.id);
  }

  const taskOf = (source: string, id: string): Task => ({ id, needed: [...needed.of(source)] });

  return {
    async next() {
      for (;;) {
        const task = take();
        if (task !== undefined || waiting.every(({ ids }) => ids.length === 0)) return task;
        await changed.promise;
      }
    },
    done(played) {
      needed.add(played);
      playing.delete(played.source);
      changed.resolve();
      changed = Promise.withResolvers();
    },
  };
}
