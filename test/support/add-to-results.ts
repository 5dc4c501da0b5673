/** Adds a text to each message with tool results in a Messages body, as clients do with reminders. */

type Block = { readonly type: string };
type Body = { readonly messages: readonly { readonly role: string; readonly content: unknown }[] };

export function addToResults(body: Uint8Array, words: string): Uint8Array {
  const { messages, ...others } = JSON.parse(new TextDecoder().decode(body)) as Body;
  const spoken = messages.map((message) => {
    const { content } = message;
    const answers = Array.isArray(content) && (content as Block[]).some(({ type }) => type === 'tool_result');
    return answers
      ? { ...message, content: [...(content as Block[]), { type: 'text', text: words }] }
      : message;
  });
  return new TextEncoder().encode(JSON.stringify({ ...others, messages: spoken }));
}
