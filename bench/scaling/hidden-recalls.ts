/** Plays a conversation in which the model made one recall before each of its replies. */
import type { ModelReply } from '../../src/codecs/codec.ts';
import { openaiChat } from '../../src/codecs/openai-chat/index.ts';
import type { Engine } from '../../src/engine/types.ts';
import { chat } from '../../src/cli/replay/sources.ts';
import { chatBody, type Messages } from './bodies.ts';
import { tenant } from './warm-turns.ts';

/** Returns `count` questions, each with a reply. */
export function talkOf(count: number): Messages {
  return Array.from({ length: count }, (_, at) => [
    { role: 'user', content: `What does note ${at} say?` },
    { role: 'assistant', content: `Note ${at} says what it says. ${'It goes on for a while. '.repeat(20)}` },
  ]).flat();
}

/** Plays the conversation from its start and records one recall for each reply. */
export async function recallForEach(engine: Engine, messages: Messages, answerBytes: number): Promise<void> {
  for (let at = 1; at < messages.length; at += 2) {
    const body = chatBody(messages.slice(0, at));
    const prepared = await engine.prepare({ codec: openaiChat, body, tenant });
    const call = { id: `recall_${at}`, name: prepared.recallTool ?? '', argumentsJson: `{"id":"mem_${at}"}` };
    const turn: ModelReply['turn'] = chat.turn([call]);
    const closing = new TextEncoder().encode(JSON.stringify(messages[at]));
    const answers = [{ call, text: `Note ${at}. `.padEnd(answerBytes, 'Its text. ') }];
    await prepared.remember({ rounds: [{ turn, answers }], closing });
  }
}
