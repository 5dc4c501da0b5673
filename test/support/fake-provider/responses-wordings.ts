/** Spells how Responses says that one value of a request is missing or wrong. */
import type { Refusal } from './script.ts';

export function missing(param: string): Refusal {
  return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' };
}

export function invalidType(param: string, expected: string, got: unknown): Refusal {
  const kind = got === null ? 'null' : Array.isArray(got) ? 'an array' : typeof got;
  const named = /^(?:an |null)/.test(kind) ? kind : `${kind === 'object' ? 'an' : 'a'} ${kind}`;
  return {
    message: `Invalid type for '${param}': expected ${expected}, but got ${named} instead.`,
    param,
    code: 'invalid_type',
  };
}

export function invalidValue(param: string, value: unknown, supported: string): Refusal {
  return {
    message: `Invalid value: '${String(value)}'. Supported values are: ${supported}.`,
    param,
    code: 'invalid_value',
  };
}
