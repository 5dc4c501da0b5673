/** Ghost turns in OpenAI Responses: the items as they were, and an output for each answer behind them. */
import type { GhostTurn } from '../../conversation/ghost-turn.ts';
import { jsonBytes } from '../../conversation/splice.ts';
import { stringIn, withMembers } from '../event-json.ts';
import { callText, type Saying } from '../ghost-sayings.ts';
import { ghostInserter } from '../insert-ghosts.ts';
import { unremembered } from '../read-body.ts';
import { callsOfItems, isReasoning, type Item, itemsOf, textOfItems } from './output.ts';
import { read } from './read.ts';
import { itemText } from './structure.ts';
import { roundItems, writer } from './write.ts';

export const insertGhosts = ghostInserter(
  {
    readTurn: (turn) => read(withMembers(jsonBytes({}), { input: turn }), unremembered),
    reasoningKeys(bytes) {
      const item: unknown = JSON.parse(new TextDecoder().decode(bytes));
      return ['id', 'encrypted_content'].flatMap((key) => stringIn(item, key) ?? []);
    },
    round: ({ body }, round) => roundItems(body, round),
    besideResults: ({ body }, round) => ({ messages: roundItems(body, round), splices: [] }),
    referred(conversation, message, part, ghost) {
      if (part.type !== 'opaque' || part.kind !== 'item_reference') return undefined;
      const item = saidBefore(ghost).find(
        ({ value }) => stringIn(value, 'id') === itemText(conversation, message, 'id'),
      );
      return item && sayingOf(item);
    },
  },
  writer,
);

/** A client whose history the provider keeps sends references in place of what the model said. */
function saidBefore({ rounds, closing }: GhostTurn): readonly Item[] {
  const turns = rounds.map(({ turn }) => turn);
  return [...turns, ...(closing ? [closing] : [])].flatMap(itemsOf);
}

function sayingOf(item: Item): Saying {
  if (isReasoning(item)) return { kind: 'reasoning', text: stringIn(item.value, 'id') ?? '' };
  const [call] = callsOfItems([item]);
  if (call) return { kind: 'calls', text: callText(call.name, call.argumentsJson) };
  return { kind: 'texts', text: textOfItems([item]) };
}
