import { describe, expect, it } from 'vitest';
import { chatBody, readChat } from '../../../test/support/chat-conversation.ts';
import { repliesBegin } from '../drop-messages.ts';

const conversation = readChat(
  chatBody([
    { user: 'Which port?' },
    { assistant: 'The port is 8080.\n\nIt stands in the file of settings.' },
    { calls: [{ name: 'run', input: '{}', result: 'Done.' }] },
    { assistant: 'words '.repeat(100) },
    { user: 'Good.' },
    { assistant: '"Quoted" and done.' },
  ]),
);

const begin = (most: number) => repliesBegin(conversation, conversation.messages, most);

describe('beginnings of replies', () => {
  it('are the first words of replies without calls, quoted on one line', () => {
    expect(begin(10_000)).toEqual([
      '"The port is 8080. It stands in the file of settings."',
      `"${'words '.repeat(20)}…"`,
      '"\\"Quoted\\" and done."',
    ]);
  });

  it('are those of the newest replies if not all fit', () => {
    expect(begin(90)).toEqual([
      '"The port is 8080. It stands in the file of settings."',
      '"\\"Quoted\\" and done."',
    ]);
    expect(begin(30)).toEqual(['"\\"Quoted\\" and done."']);
    expect(begin(0)).toEqual([]);
  });
});
