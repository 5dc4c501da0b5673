/** The codec of OpenAI Chat Completions. */
import type { Codec } from '../codec.ts';
import { explainError } from '../explain-error.ts';
import { read } from './read.ts';
import { awaitsRecall, errorBody, isOverflow, readResponse, writeResponse } from './response.ts';
import { rules } from './rules.ts';
import { openStream } from './stream.ts';
import { continueWith, write } from './write.ts';

/** OpenAI Chat Completions, and every server that speaks it: `POST /v1/chat/completions`. */
export const openaiChat: Codec = {
  name: 'openai-chat',
  read,
  write,
  rules,
  readResponse,
  awaitsRecall,
  writeResponse,
  openStream,
  continueWith,
  errorBody,
  isOverflow,
  explainError,
};
