/** Tells which endpoint of a provider a method and a path name. Pure. */
import type { ModelRequest, ScriptFormat } from './script.ts';

export type Endpoint = { readonly format: ScriptFormat } & (
  | { readonly kind: 'reply' | 'count'; readonly named?: NamedInPath }
  | { readonly kind: 'compact' }
  /** A kept response. */
  | { readonly kind: 'read' | 'delete'; readonly id: string }
  | { readonly kind: 'alive' }
  /** Any other path; the format is that of the provider with such paths. */
  | { readonly kind: 'other' }
);

type NamedInPath = Pick<ModelRequest, 'model' | 'reply'>;

export function endpointOf(method: string, target: string): Endpoint {
  const [path = '/', query] = target.split('?', 2);
  if (method === 'HEAD' && path === '/') return { format: 'chat', kind: 'alive' };
  const known = method === 'POST' && Object.hasOwn(posted, path) ? posted[path] : undefined;
  if (known) return known;
  const [, id] = /^\/v1\/responses\/(\w+)$/.exec(path) ?? [];
  if (id !== undefined && method === 'GET') return { format: 'responses', kind: 'read', id };
  if (id !== undefined && method === 'DELETE') return { format: 'responses', kind: 'delete', id };
  const [, model, action] = /^\/v1(?:beta\w*)?\/models\/([^/:]+):(\w+)$/.exec(path) ?? [];
  if (method === 'POST' && model !== undefined) {
    const named = { model: decodeURIComponent(model), reply: replyOf(action, query) };
    if (action === 'countTokens') return { format: 'gemini', kind: 'count', named };
    if (action === 'generateContent' || action === 'streamGenerateContent')
      return { format: 'gemini', kind: 'reply', named };
  }
  return { format: path.startsWith('/v1beta') ? 'gemini' : 'chat', kind: 'other' };
}

const posted: Readonly<Record<string, Endpoint>> = {
  '/v1/chat/completions': { format: 'chat', kind: 'reply' },
  '/v1/messages': { format: 'messages', kind: 'reply' },
  '/v1/messages/count_tokens': { format: 'messages', kind: 'count' },
  '/v1/responses': { format: 'responses', kind: 'reply' },
  '/backend-api/codex/responses': { format: 'responses', kind: 'reply' },
  '/v1/responses/compact': { format: 'responses', kind: 'compact' },
  '/v1/responses/input_tokens': { format: 'responses', kind: 'count' },
};

function replyOf(action: string | undefined, query: string | undefined): ModelRequest['reply'] {
  if (action !== 'streamGenerateContent') return 'whole';
  return new URLSearchParams(query).get('alt') === 'sse' ? 'events' : 'array';
}
