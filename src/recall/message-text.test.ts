import { describe, expect, it } from 'vitest';
import { resolveRecall } from './tool.ts';
import { documentSpan, messageText } from './read-original.ts';

const code = 'func main() {\n\tfmt.Println("hello")\n}\n'.repeat(3);
const call = {
  role: 'assistant',
  content: 'short, with a\nbreak',
  tool_calls: [
    { id: 'call_1', function: { name: 'write', arguments: JSON.stringify({ path: 'a.go', content: code }) } },
  ],
};
const result = { role: 'tool', tool_call_id: 'call_1', content: code };

describe('a removed message', () => {
  it('shows its long texts decoded, each under its path', async () => {
    const json = JSON.stringify(result);
    expect(messageText(json, documentSpan(json), 1)).toBe(
      `{"role":"tool","tool_call_id":"call_1","content":…}\n## $[1].content\n${code}`,
    );
    const answer = await resolveRecall({
      argumentsJson: JSON.stringify({ id: 'm1', path: '$[1].content' }),
      lookup: () => JSON.stringify([call, result]),
      maxTokens: 5_000,
      countTokens: (text) => text.length,
    });
    expect(answer).toBe(code);
  });

  it('keeps short texts and names in place, and the arguments of a call as JSON', () => {
    const json = JSON.stringify(call);
    expect(messageText(json, documentSpan(json), 0)).toBe(
      `{"role":"assistant","content":"short, with a\\nbreak","tool_calls":[{"id":"call_1","function":{"name":"write","arguments":…}}]}\n` +
        `## $[0].tool_calls[0].function.arguments\n${JSON.stringify({ path: 'a.go', content: code })}`,
    );
  });

  it('stays JSON in deep values', () => {
    const deep = `${'['.repeat(20)}${JSON.stringify(code)}${']'.repeat(20)}`;
    expect(messageText(deep, documentSpan(deep), 0)).toBe(deep);
  });
});
