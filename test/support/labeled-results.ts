/** Lists the texts of tool results in a body in order, each with the name that references use for it. */
import type { Codec } from '../../src/codecs/codec.ts';
import { inputOf, textOf } from '../../src/conversation/messages.ts';
import { pairCalls } from '../../src/conversation/turns.ts';
import { callLabel } from '../../src/strategies/shrink-results.ts';
import { freshReading } from './chat-conversation.ts';
import type { LabeledText } from './resolve-references.ts';

export type LabeledResult = LabeledText & { readonly callId: string };

export function labeledResults(codec: Codec, body: Uint8Array): readonly LabeledResult[] {
  const conversation = codec.read(body, freshReading());
  const pairs = pairCalls(conversation).pairs.toSorted(
    ({ result: one }, { result: other }) =>
      (one?.message ?? 0) - (other?.message ?? 0) || (one?.part ?? 0) - (other?.part ?? 0),
  );
  return pairs.flatMap(({ call, result }): readonly LabeledResult[] => {
    const asking = conversation.messages[call.message]!;
    const part = asking.parts[call.part]!;
    const message = result && conversation.messages[result.message]!;
    const said = message?.parts[result!.part];
    if (part.type !== 'tool-call' || said?.type !== 'tool-result') return [];
    const input = inputOf(body, asking, part);
    const label = callLabel({ name: part.name, input });
    const written = JSON.parse(input) as LabeledResult['written'];
    return said.texts.map((span) => ({
      callId: part.id,
      label,
      text: textOf(body, message!, span),
      ...(written && { written }),
    }));
  });
}
