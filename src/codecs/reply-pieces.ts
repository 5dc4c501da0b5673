/** What a reply says, in words in which the model's own turn and a client's copy of it can be compared. */
import type { Conversation, Message, Part } from '../conversation/conversation.ts';
import { bytesOf, decodeLiteral, textOf, textsOf } from '../conversation/conversation.ts';
import type { HiddenRecall } from '../conversation/hidden-recall.ts';
import { isRecord } from '../conversation/arguments.ts';
import type { Piece, Said } from './match-copy.ts';

/** What only a codec knows of reading replies. */
export type HiddenRecallReader = {
  /** A turn of the model, recorded from a response, as the view of a request that holds nothing else. */
  readTurn(turn: Uint8Array): Conversation;
  /** What tells one reasoning from another, best first: clients may leave some of it out. None where its words do. */
  reasoningKeys(bytes: Uint8Array): readonly string[];
  /** What a part stands for that only refers to it, as a turn of its own; undefined for all others. */
  referred?(
    conversation: Conversation,
    message: Message,
    part: Part,
    hiddenRecall: HiddenRecall,
  ): Uint8Array | undefined;
};

type Saying = { readonly kind: keyof Said } & Pick<Piece, 'text' | 'isWhole'>;

/** What the client was shown of a recorded turn: all but the calls of the recall tool. */
export function shownOf(reader: HiddenRecallReader, turn: Uint8Array, recallTool: string | undefined): Said {
  const view = reader.readTurn(turn);
  return collect(view.messages, (message, part) =>
    part.type === 'tool-call' && part.name === recallTool ? [] : sayingsOf(reader, view, message, part),
  );
}

export function saidInCopy(
  reader: HiddenRecallReader,
  conversation: Conversation,
  copy: readonly Message[],
  hiddenRecall: HiddenRecall,
): Said {
  return collect(copy, (message, part) => {
    const referred = reader.referred?.(conversation, message, part, hiddenRecall);
    if (referred) return sayingsOfReferred(reader, referred);
    return sayingsOf(reader, conversation, message, part).slice(0, 1);
  });
}

function sayingsOfReferred(reader: HiddenRecallReader, turn: Uint8Array): readonly Saying[] {
  const view = reader.readTurn(turn);
  return view.messages.flatMap((message) =>
    message.parts.flatMap((part) =>
      sayingsOf(reader, view, message, part)
        .slice(0, 1)
        .map((saying) => ({ ...saying, isWhole: true })),
    ),
  );
}

function collect(
  messages: readonly Message[],
  sayings: (message: Message, part: Part) => readonly Saying[],
): Said {
  const said: Record<keyof Said, Piece[]> = { texts: [], reasoning: [], calls: [], others: [] };
  for (const message of messages) {
    message.parts.forEach((part, index) => {
      const place = { message: message.index, part: index };
      for (const { kind, text, isWhole } of sayings(message, part)) said[kind].push({ text, isWhole, place });
    });
  }
  return said;
}

/** Sayings by part: parts read once serve every later body. */
const known = new WeakMap<Part, readonly Saying[]>();

/** One saying, or several ways to tell the same reasoning. */
function sayingsOf(
  reader: HiddenRecallReader,
  conversation: Conversation,
  message: Message,
  part: Part,
): readonly Saying[] {
  const sayings = known.get(part) ?? readSayings(reader, conversation, message, part);
  known.set(part, sayings);
  return sayings;
}

function readSayings(
  reader: HiddenRecallReader,
  { body }: Conversation,
  message: Message,
  part: Part,
): readonly Saying[] {
  const words = () => textsOf(part).map((span) => textOf(body, message, span));
  switch (part.type) {
    case 'text':
      return [{ kind: 'texts', text: words().join(''), isWhole: false }];
    case 'reasoning': {
      const keys = reader.reasoningKeys(bytesOf(body, message, part.span));
      if (keys.length === 0) return [{ kind: 'reasoning', text: words().join(''), isWhole: false }];
      return keys.map((text) => ({ kind: 'reasoning', text, isWhole: true }));
    }
    case 'tool-call': {
      const text = callText(part.name, argumentsOf(bytesOf(body, message, part.input)));
      return [{ kind: 'calls', text, isWhole: true }];
    }
    case 'tool-result':
    case 'media':
    case 'tool-definition':
      return [{ kind: 'others', text: part.type, isWhole: true }];
    case 'opaque':
      return [{ kind: 'others', text: part.kind, isWhole: true }];
  }
}

/** What tells one call from another: clients may spell arguments anew, so their values count and not their order. None are `{}`. */
function callText(name: string, argumentsJson: string): string {
  return `${name} ${JSON.stringify(parsed(argumentsJson.trim() || '{}'), sorted)}`;
}

/** In some formats arguments are JSON within a string. */
function argumentsOf(input: Uint8Array): string {
  return input[0] === '"'.charCodeAt(0) ? decodeLiteral(input) : new TextDecoder().decode(input);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function sorted(_key: string, value: unknown): unknown {
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    : value;
}
