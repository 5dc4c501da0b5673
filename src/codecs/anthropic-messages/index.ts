/** Exports the codec of Anthropic Messages. */
import type { Codec, Resending } from '../codec.ts';
import { isFilled } from '../../conversation/json-scan.ts';
import { explainError } from '../provider-errors.ts';
import { parseFields, providerTool, positiveNumberIn } from '../resending.ts';
import { cacheMarks } from './cache-marks.ts';
import { insertHiddenRecalls, promptBody, continueWith, write, read } from './request.ts';
import {
  errorBody,
  overflowIn,
  isTruncated,
  isComplete,
  readResponse,
  refusesReasoning,
  writeResponse,
} from './response.ts';
import { rules } from './rules.ts';
import { openStream } from './stream.ts';

/** Anthropic Messages: `POST /v1/messages`. */
export const anthropicMessages: Codec = {
  name: 'anthropic-messages',
  genAi: { provider: 'anthropic', operation: 'chat' },
  read,
  write,
  rules,
  readResponse,
  isComplete,
  isTruncated,
  writeResponse,
  openStream,
  continueWith,
  insertHiddenRecalls,
  cacheMarks,
  resending,
  promptBody,
  errorBody,
  overflowIn,
  refusesReasoning,
  explainError,
};

const resendingFields = new Set(['tools', 'mcp_servers', 'container', 'max_tokens']);

/** Types of tools that clients run. */
const clientTool = /^(?:custom|bash_|text_editor_|computer_|memory_|$)/;

function resending(body: Uint8Array): Resending {
  const fields = parseFields(body, resendingFields);
  const { tools, mcp_servers: servers, container } = fields;
  const field = isFilled(servers) ? 'mcp_servers' : container ? 'container' : undefined;
  return {
    effect: field ?? providerTool(tools, (type) => clientTool.test(type)),
    maxOutputTokens: positiveNumberIn(fields['max_tokens']),
  };
}
