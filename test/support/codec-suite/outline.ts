/** Shows a conversation in a few readable lines, for expectations written out in tests. */
import type { Conversation, Media, Part, Span } from '../../../src/conversation/conversation.ts';
import { bytesOf, textOf } from '../../../src/conversation/messages.ts';
import { shown } from './views.ts';

/** Returns one line a block: its role, then its parts with their content. */
export function outline(conversation: Conversation): readonly string[] {
  const { body, preamble, messages } = conversation;
  const lineOf = (role: string, block: { readonly span: Span; readonly parts: readonly Part[] }) =>
    `${role}: ${block.parts.map((part) => partText(body, block, part)).join(', ')}`;
  return [
    ...preamble.map((block) => lineOf('beside', block)),
    ...messages.map((message) => lineOf(message.role, message)),
  ];
}

function partText(body: Uint8Array, block: { readonly span: Span }, part: Part): string {
  const text = (span: Span) => JSON.stringify(textOf(body, block, span));
  const media = ({ kind, data }: Media) => `${kind}(${data ? shown(bytesOf(body, block, data)) : ''})`;
  switch (part.type) {
    case 'text':
      return part.texts.map(text).join('+');
    case 'tool-call':
      return `call ${part.id} ${part.name}(${shown(bytesOf(body, block, part.input))})`;
    case 'tool-result': {
      const error = part.isError === undefined ? '' : part.isError ? ' error' : ' fine';
      return `result ${part.callId}${error} [${[...part.texts.map(text), ...part.media.map(media)].join(' ')}]`;
    }
    case 'reasoning':
      return `${part.signed ? 'signed ' : ''}reasoning ${part.texts.map(text).join('+')}`;
    case 'media':
      return media(part.media);
    case 'tool-definition':
      return `tool ${part.name}`;
    case 'opaque':
      return `opaque ${part.kind}`;
  }
}
