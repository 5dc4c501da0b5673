/** Hidden recalls in OpenAI Responses: the items as they were, and an output for each answer behind them. */
import type { Conversation } from '../../conversation/conversation.ts';
import type { RecallRound, HiddenRecall } from '../../conversation/hidden-recall.ts';
import { jsonBytes } from '../../conversation/splice.ts';
import { jsonList, memberBytes, stringIn, withMembers } from '../event-json.ts';
import { hiddenRecallInserter } from '../insert-hidden-recalls.ts';
import { unremembered } from '../read-body.ts';
import { remembered } from '../remembered.ts';
import { itemsOf } from './output.ts';
import { read } from './read.ts';
import { itemText } from './structure.ts';
import { roundItems, writer } from './write.ts';

/** A small body that stands for those of a conversation: whether the provider keeps what it says is all that a round asks of one. */
const kept = jsonBytes({});
const notKept = jsonBytes({ store: false });
const itemsWhereKept = remembered((round: RecallRound) => roundItems(kept, round));
const itemsWhereNotKept = remembered((round: RecallRound) => roundItems(notKept, round));
const isKept = remembered(({ body }: Conversation) => memberBytes(body, 'store')?.[0] !== 'f'.charCodeAt(0));

function itemsFor(conversation: Conversation, round: RecallRound): readonly Uint8Array[] {
  return isKept(conversation) ? itemsWhereKept(round) : itemsWhereNotKept(round);
}

export const insertHiddenRecalls = hiddenRecallInserter(
  {
    readTurn: (turn) => read(withMembers(jsonBytes({}), { input: turn }), unremembered),
    reasoningKeys(bytes) {
      const item: unknown = JSON.parse(new TextDecoder().decode(bytes));
      return ['id', 'encrypted_content'].flatMap((key) => stringIn(item, key) ?? []);
    },
    round: itemsFor,
    besideResults: (conversation, round) => ({ messages: itemsFor(conversation, round), splices: [] }),
    referred(conversation, message, part, hiddenRecall) {
      if (part.type !== 'opaque' || part.kind !== 'item_reference') return undefined;
      return saidBefore(hiddenRecall).get(itemText(conversation, message, 'id') ?? '');
    },
  },
  writer,
);

/** Items by id, each as a turn. A client whose history the provider keeps sends references in place of what the model said. */
const saidBefore = remembered(({ rounds, closing }: HiddenRecall): ReadonlyMap<string, Uint8Array> => {
  const turns = [...rounds.map(({ turn }) => turn), ...(closing ? [closing] : [])];
  const items = turns.flatMap(itemsOf);
  return new Map(items.map(({ bytes, value }) => [stringIn(value, 'id') ?? '', jsonList([bytes])]));
});
