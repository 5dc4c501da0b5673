/**
 * Reads one input item: a message, a call, an output, reasoning, or an opaque item. Its canonical pieces leave out the cache
 * marks that clients move between turns, and a text spelled as a string gives the same piece as one plain text part.
 */
import type { Part, Role, Span, Media, Stays } from '../../conversation/conversation.ts';
import { type Member, ScanError, concatBytes, parseSpan, scanArray } from '../../conversation/json-scan.ts';
import { canonicalDigest, significantBytes } from '../../conversation/messages.ts';
import type { ReadBlock, ReadContext } from '../codec.ts';
import { inSteps, oneStep } from '../../conversation/steps.ts';
import {
  elementsAt,
  keptWithStep,
  isNull,
  lastMembers,
  objectAt,
  startsWith,
  stringAt,
  textMember,
} from '../read-body.ts';

type ItemMembers = ReadonlyMap<string, Member>;

export function parseItem(bytes: Uint8Array, reading: ReadContext): ReadBlock {
  const members = oneStep(() => objectAt(bytes, 0));
  const { byKey, repeats } = lastMembers(members);
  const { role, parts: read } = readItem(bytes, byKey);
  const parts = repeats ? keptWithStep(read, whole(bytes)) : read;
  return {
    role,
    parts,
    canonical: oneStep(() => canonicalDigest(role, itemPieces(bytes, members, role), reading.digest)),
  };
}

type ItemReading = { readonly role: Role; readonly parts: readonly Part[] };

function readItem(bytes: Uint8Array, byKey: ItemMembers): ItemReading {
  const kind = kindOf(bytes, byKey);
  if (kind === 'message') return readMessage(bytes, byKey);
  if (kind === 'reasoning') return { role: 'assistant', parts: [readReasoning(bytes, byKey)] };
  const called = Object.hasOwn(calls, kind) ? calls[kind] : undefined;
  if (called) return readCall(bytes, byKey, kind, called);
  const answered = kind.endsWith('_output') && Object.hasOwn(calls, kind.slice(0, -'_output'.length));
  return answered ? readOutput(bytes, byKey, kind) : carried(bytes, kind);
}

/** Returns the type of an item. Messages may omit it, and so may references to items the provider keeps. */
function kindOf(bytes: Uint8Array, byKey: ItemMembers): string {
  const type = byKey.get('type');
  if (type && !isNull(bytes, type.value)) {
    const kind = stringAt(bytes, type);
    if (kind === undefined) throw new ScanError('an item has a type that is no text');
    return kind;
  }
  if (byKey.has('role')) return 'message';
  if (byKey.has('id')) return 'item_reference';
  throw new ScanError('an item has neither type nor role');
}

const roles: Readonly<Record<string, Role>> = {
  system: 'system',
  developer: 'system',
  user: 'user',
  assistant: 'assistant',
};

function readMessage(bytes: Uint8Array, byKey: ItemMembers): ItemReading {
  const said = stringAt(bytes, byKey.get('role')) ?? '';
  const role = Object.hasOwn(roles, said) ? roles[said] : undefined;
  if (!role) throw new ScanError('a message has no known role');
  const content = byKey.get('content')?.value;
  if (!content) throw new ScanError('a message has no content');
  return { role, parts: parseContent(bytes, content) };
}

/** Reads reasoning. Summaries are for readers; the model continues from the encrypted content, and both are sent back unchanged. */
function readReasoning(bytes: Uint8Array, byKey: ItemMembers): Part {
  const texts = ['summary', 'content'].flatMap((key): readonly Span[] => {
    const list = byKey.get(key)?.value;
    if (!list || !startsWith(bytes, list, '[')) return [];
    return scanArray(bytes, list.start).elements.flatMap((element) => {
      if (!startsWith(bytes, element, '{')) return [];
      return textMember(bytes, lastMembers(objectAt(bytes, element.start)).byKey.get('text')) ?? [];
    });
  });
  const sealed = textMember(bytes, byKey.get('encrypted_content'));
  return { type: 'reasoning', span: whole(bytes), texts, signed: true, sealed };
}

/** Calls by type: the members that may hold the arguments, and the tool's name when the item has none. */
const calls: Readonly<Record<string, { readonly input: readonly string[]; readonly name?: string }>> = {
  function_call: { input: ['arguments'] },
  custom_tool_call: { input: ['input'] },
  local_shell_call: { input: ['action'], name: 'local_shell' },
  shell_call: { input: ['action'], name: 'shell' },
  apply_patch_call: { input: ['operation'], name: 'apply_patch' },
  computer_call: { input: ['actions', 'action'], name: 'computer' },
};

/** Returns the name that the calls of a tool without a name have: one of the provider's own, whose calls the client answers. */
export function builtInName(type: string | undefined): string | undefined {
  const [kind = ''] = type?.split('_use_preview') ?? [];
  return Object.hasOwn(calls, `${kind}_call`) ? calls[`${kind}_call`]!.name : undefined;
}

function readCall(
  bytes: Uint8Array,
  byKey: ItemMembers,
  kind: string,
  called: { readonly input: readonly string[]; readonly name?: string },
): ItemReading {
  const id = stringAt(bytes, byKey.get('call_id'));
  const name = called.name ?? stringAt(bytes, byKey.get('name'));
  const input = called.input.map((key) => byKey.get(key)?.value).find((value) => value !== undefined);
  if (id === undefined || name === undefined || !input)
    throw new ScanError(`a ${kind} lacks id, name or input`);
  return { role: 'assistant', parts: [{ type: 'tool-call', span: whole(bytes), id, name, input }] };
}

/** Reads an output. The output of a local shell names its call in `id`. An output without any id belongs to no known call. */
function readOutput(bytes: Uint8Array, byKey: ItemMembers, kind: string): ItemReading {
  const named = stringAt(bytes, byKey.get('call_id'));
  const callId = named ?? (kind === 'local_shell_call_output' ? stringAt(bytes, byKey.get('id')) : undefined);
  if (callId === undefined) return { role: 'tool', parts: [{ type: 'opaque', span: whole(bytes), kind }] };
  const output = byKey.get('output')?.value;
  const status = kind === 'apply_patch_call_output' ? stringAt(bytes, byKey.get('status')) : undefined;
  const isError = status === undefined ? undefined : status === 'failed';
  const { texts, media, stays } = output
    ? parseOutput(bytes, output, kind)
    : { texts: [], media: [], stays: undefined };
  return {
    role: 'tool',
    parts: [
      { type: 'tool-result', span: whole(bytes), callId, texts, media, isError, ...(stays && { stays }) },
    ],
  };
}

/** The side that an opaque item belongs to. Unknown items belong to neither side. */
const sides: Readonly<Record<string, Role>> = {
  web_search_call: 'assistant',
  file_search_call: 'assistant',
  code_interpreter_call: 'assistant',
  image_generation_call: 'assistant',
  tool_search_call: 'assistant',
  tool_search_output: 'tool',
  mcp_list_tools: 'assistant',
  mcp_call: 'assistant',
  mcp_approval_request: 'assistant',
  mcp_approval_response: 'tool',
  program: 'assistant',
  program_output: 'assistant',
  item_reference: 'assistant',
  compaction: 'assistant',
};

function carried(bytes: Uint8Array, kind: string): ItemReading {
  const role = Object.hasOwn(sides, kind) ? sides[kind]! : 'system';
  const stays = bringsTools.has(kind) ? ({ stays: 'pair' } as const) : {};
  return { role, parts: [{ type: 'opaque', span: whole(bytes), kind, ...stays }] };
}

/** Items that bring tools to the model: it gets their definitions only from these. */
const bringsTools: ReadonlySet<string> = new Set([
  'tool_search_call',
  'tool_search_output',
  'additional_tools',
  'mcp_list_tools',
]);

function whole(bytes: Uint8Array): Span {
  return { start: 0, end: bytes.length };
}

/** Marks of the prefix that the provider should keep; the newest 80 count, so clients move them along. */
const moving: ReadonlySet<string> = new Set(['prompt_cache_breakpoint']);

const encoder = new TextEncoder();

function itemPieces(bytes: Uint8Array, members: readonly Member[], role: Role): readonly Uint8Array[] {
  const plain = role === 'assistant' ? 'output_text' : 'input_text';
  return members
    .filter((member) => !moving.has(member.key))
    .map((member) =>
      member.key === 'content' || member.key === 'output'
        ? concatBytes([encoder.encode(`"${member.key}":[`), ...contentPieces(bytes, member.value, plain)])
        : significantBytes(bytes, [member], moving),
    );
}

function contentPieces(bytes: Uint8Array, content: Span, plain: string): readonly Uint8Array[] {
  if (isText(bytes, content)) return [textPiece(bytes, content)];
  if (!startsWith(bytes, content, '[')) return [bytes.subarray(content.start, content.end)];
  return inSteps(elementsAt(bytes, content), (element) => partPiece(bytes, element, plain));
}

function partPiece(bytes: Uint8Array, span: Span, plain: string): Uint8Array {
  if (!startsWith(bytes, span, '{')) return bytes.subarray(span.start, span.end);
  const still = objectAt(bytes, span.start).filter((member) => !moving.has(member.key));
  const type = still.find((member) => member.key === 'type');
  const text = still.find((member) => member.key === 'text');
  const isPlain =
    type && text && still.length === 2 && parseSpan(bytes, type.value) === plain && isText(bytes, text.value);
  return isPlain ? textPiece(bytes, text.value) : significantBytes(bytes, still, moving);
}

function textPiece(bytes: Uint8Array, literal: Span): Uint8Array {
  return concatBytes([
    encoder.encode('text:'),
    bytes.subarray(literal.start, literal.end),
    encoder.encode(','),
  ]);
}

/** True for a non-empty string. The empty string is different: a list with one empty text has one part more. */
function isText(bytes: Uint8Array, span: Span): boolean {
  return startsWith(bytes, span, '"') && span.end - span.start > 2;
}

// Content of messages and outputs: texts, media, and opaque parts

/** Reads a text or a list of parts. An empty text is still content: a message could hold nothing else. */
function parseContent(bytes: Uint8Array, content: Span): readonly Part[] {
  if (startsWith(bytes, content, '"')) return [{ type: 'text', span: content, texts: [content] }];
  if (!startsWith(bytes, content, '[')) throw new ScanError('content is neither a string nor an array');
  return inSteps(elementsAt(bytes, content), (span): Part => {
    const { kind, text, media, stays } = parseElement(bytes, span);
    const kept = stays && { stays };
    if (text) return { type: 'text', span, texts: [text], ...kept };
    return media ? { type: 'media', span, media, ...kept } : { type: 'opaque', span, kind, ...kept };
  });
}

/** Reads an output: a text, a list of parts or of command results, or one screenshot. */
function parseOutput(
  bytes: Uint8Array,
  output: Span,
  kind: string,
): {
  readonly texts: readonly Span[];
  readonly media: readonly Media[];
  readonly stays: Stays | undefined;
} {
  if (startsWith(bytes, output, '"')) return { texts: [output], media: [], stays: undefined };
  const isList = startsWith(bytes, output, '[');
  if (!isList && !startsWith(bytes, output, '{')) return { texts: [], media: [], stays: undefined };
  const elements = isList ? elementsAt(bytes, output) : [output];
  // The writer spells a computer call and its output as those of a function (./structure.ts).
  const isFixed = !isList && kind !== 'computer_call_output';
  const items = inSteps(elements, (span) => ({ span, ...parseElement(bytes, span) }));
  return {
    texts: items.flatMap(({ text, printed }) => text ?? printed),
    media: items.flatMap(({ span, text, media, printed }) =>
      text || printed.length > 0
        ? []
        : [{ ...(media ?? { kind: 'other', span, data: undefined }), ...(isFixed && { isFixed }) }],
    ),
    stays: items.find(({ stays }) => stays)?.stays,
  };
}

type Element = {
  readonly kind: string;
  readonly text: Span | undefined;
  readonly media: Media | undefined;
  /** The output of a command. */
  readonly printed: readonly Span[];
  readonly stays: Stays | undefined;
};

function parseElement(bytes: Uint8Array, span: Span): Element {
  if (!startsWith(bytes, span, '{')) throw new ScanError('a content part is not an object');
  const { byKey, repeats } = lastMembers(objectAt(bytes, span.start));
  const kind = stringAt(bytes, byKey.get('type')) ?? 'unknown';
  const holder = Object.hasOwn(mediaHolders, kind) ? mediaHolders[kind] : undefined;
  const data = holder?.data
    .map((key) => textMember(bytes, byKey.get(key)))
    .find((value) => value !== undefined);
  return {
    kind,
    text: texts.has(kind) && !isAnnotated(bytes, byKey) ? textMember(bytes, byKey.get('text')) : undefined,
    media: holder && { kind: holder.kind, span, data },
    printed: byKey.has('type') ? [] : printedBy(bytes, byKey),
    stays: repeats ? 'step' : undefined,
  };
}

const texts: ReadonlySet<string> = new Set(['input_text', 'output_text', 'text']);

/** True for a text with annotations, which name positions of exactly this text: it is never edited. */
function isAnnotated(bytes: Uint8Array, byKey: ReadonlyMap<string, Member>): boolean {
  const list = byKey.get('annotations')?.value;
  if (!list || isNull(bytes, list)) return false;
  return !startsWith(bytes, list, '[') || scanArray(bytes, list.start).elements.length > 0;
}

function printedBy(bytes: Uint8Array, byKey: ReadonlyMap<string, Member>): readonly Span[] {
  return ['stdout', 'stderr'].flatMap((key) => textMember(bytes, byKey.get(key)) ?? []);
}

const mediaHolders: Readonly<Record<string, { data: readonly string[]; kind: Media['kind'] } | undefined>> = {
  input_image: { data: ['image_url'], kind: 'image' },
  computer_screenshot: { data: ['image_url'], kind: 'image' },
  input_file: { data: ['file_data', 'file_url'], kind: 'document' },
  input_audio: { data: ['data'], kind: 'audio' },
};
