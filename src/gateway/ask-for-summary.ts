/** One call of a model for a summary, in the wire format of the conversation. */
import type { Codec, ModelReply, Prompt } from '../codecs/codec.ts';
import { LeporelloError } from '../errors.ts';
import { readBody, type UpstreamResponse } from './http/http.ts';

/** A reply that holds a summary is small. */
const maxReplyBytes = 4 * 1024 * 1024;

/** Rejects with `upstream-failed` where the provider does not answer 200, with `bad-response` where it answers something else. */
export async function askForSummary(
  prompt: Prompt,
  codec: Codec,
  send: (body: Uint8Array) => Promise<UpstreamResponse>,
): Promise<ModelReply> {
  const response = await send(codec.promptBody(prompt));
  const body = await readBody(response.body, maxReplyBytes);
  if (response.status === 200) return codec.readResponse(body, undefined);
  throw new LeporelloError(
    'upstream-failed',
    `The upstream answered ${response.status} to a request for a summary.`,
  );
}
