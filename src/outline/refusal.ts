/** Tells an answer that is no summary: of the summarizer's trouble, not of the agent's. Pure. */

/** An error of a provider, a page of one, or a model that will not. */
export function looksFailed(text: string): boolean {
  const start = text.slice(0, 300);
  return (
    /^\{\s*"(?:error|message|detail|type"\s*:\s*"error)"/.test(start) ||
    /^<(?:!doctype|html)/i.test(start) ||
    /^(?:error|http|status)[ :]*(?:4\d\d|5\d\d)\b/i.test(start) ||
    /^error: /i.test(start) ||
    /^(?:\d{3} )?(?:internal server error|bad gateway|service unavailable|too many requests|rate limit)/i.test(
      start,
    ) ||
    /^(?:i['’]?m|i am) (?:sorry|unable|not able)|^sorry,|^i (?:cannot|can['’]?t) |^as an ai\b/i.test(start)
  );
}
