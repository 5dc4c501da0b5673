import { describe, expect, it } from 'vitest';
import { view } from '../../test/support/codec-suite/views.ts';
import { type Edit, originalsOf } from '../conversation/edit.ts';
import { mediaOf } from '../conversation/messages.ts';
import { anthropicMessages } from './anthropic-messages/index.ts';
import type { Codec } from './codec.ts';
import { gemini } from './gemini/index.ts';
import { openaiChat } from './openai-chat/index.ts';
import { openaiResponses } from './openai-responses/index.ts';

const encoder = new TextEncoder();
const data = 'iVBORw0KGgo='.padStart(400, 'A');
const url = `data:image/png;base64,${data}`;

/** Stubs every image, document and sound that the format lets a stub replace. */
function stubbed(codec: Codec, request: object) {
  const conversation = view(codec, encoder.encode(JSON.stringify(request)));
  const edits = conversation.messages.flatMap(({ index: message, parts }) =>
    parts.flatMap((part, at) =>
      mediaOf(part).map((_, media): Edit => {
        const name = `mem_${message}.${at}.${media}`;
        return { kind: 'replace-media', message, part: at, media, stub: `[${name}]`, memory: name };
      }),
    ),
  );
  const allowed = edits.filter((edit) => codec.rules.mayEdit(conversation, edit));
  const written = codec.write(conversation, allowed);
  expect(codec.rules.faults(written)).toEqual(codec.rules.faults(conversation.body));
  expect(codec.rules.problems(view(codec, written))).toEqual(codec.rules.problems(conversation));
  const originals = originalsOf(conversation, allowed);
  return {
    request: JSON.parse(new TextDecoder().decode(written)) as unknown,
    originals: [...originals.values()].map((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as unknown),
  };
}

describe('Stubs in place of media', () => {
  it('are text blocks in Anthropic Messages, with the cache mark of the image', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
    const marked = { ...image, cache_control: { type: 'ephemeral' } };
    const cited = { type: 'document', source: { type: 'base64', data }, citations: { enabled: true } };
    const call = { type: 'tool_use', id: 'c1', name: 'look', input: {} };
    const done = { type: 'text', text: 'Done.' };
    const request = {
      messages: [
        { role: 'user', content: [marked, cited] },
        { role: 'assistant', content: [call] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: [done, image] }] },
      ],
    };
    expect(stubbed(anthropicMessages, request)).toEqual({
      request: {
        messages: [
          {
            role: 'user',
            content: [{ type: 'text', text: '[mem_0.0.0]', cache_control: { type: 'ephemeral' } }, cited],
          },
          { role: 'assistant', content: [call] },
          {
            role: 'user',
            content: [
              {
                type: 'tool_result',
                tool_use_id: 'c1',
                content: [done, { type: 'text', text: '[mem_2.0.0]' }],
              },
            ],
          },
        ],
      },
      originals: [marked, image],
    });
  });

  it('are text parts in Chat Completions', () => {
    const image = { type: 'image_url', image_url: { url } };
    const short = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
    const sound = { type: 'input_audio', input_audio: { data, format: 'wav' } };
    const request = { messages: [{ role: 'user', content: [image, short, sound] }] };
    expect(stubbed(openaiChat, request)).toEqual({
      request: {
        messages: [
          {
            role: 'user',
            content: [{ type: 'text', text: '[mem_0.0.0]' }, short, { type: 'text', text: '[mem_0.2.0]' }],
          },
        ],
      },
      originals: [image, sound],
    });
  });

  it('are input texts in Responses', () => {
    const image = { type: 'input_image', image_url: url };
    const file = { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` };
    const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' };
    const request = {
      input: [
        { role: 'user', content: [file] },
        call,
        { type: 'function_call_output', call_id: 'c1', output: [image] },
      ],
    };
    expect(stubbed(openaiResponses, request)).toEqual({
      request: {
        input: [
          { role: 'user', content: [{ type: 'input_text', text: '[mem_0.0.0]' }] },
          call,
          {
            type: 'function_call_output',
            call_id: 'c1',
            output: [{ type: 'input_text', text: '[mem_2.0.0]' }],
          },
        ],
      },
      originals: [file, image],
    });
  });

  it('make a computer call of Responses the call of a function, because its output takes only a screenshot', () => {
    const screenshot = { type: 'computer_screenshot', image_url: url.padEnd(1_200, 'A') };
    const click = { type: 'click', button: 'left', x: 10, y: 20 };
    const step = (id: string, rest: object, output: object = screenshot) => [
      { type: 'computer_call', id: `cu_${id}`, call_id: id, ...rest, pending_safety_checks: [] },
      { type: 'computer_call_output', call_id: id, output },
    ];
    const small = step('c3', { action: click }, { type: 'computer_screenshot', file_id: 'file_1' });
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] };
    const said = { type: 'message', role: 'assistant', content: 'I click.' };
    const led = step('c4', { action: click });
    const request = {
      tools: [{ type: 'computer_use_preview', display_width: 1_280, display_height: 800 }],
      input: [
        ...step('c1', { action: click }),
        ...step('c2', { actions: [click, { type: 'wait' }] }),
        ...small,
        reasoning,
        said,
        ...led,
      ],
    };
    const asFunction = (id: string, input: object, stub: string) => [
      { type: 'function_call', call_id: id, name: 'computer', arguments: JSON.stringify(input) },
      { type: 'function_call_output', call_id: id, output: [{ type: 'input_text', text: stub }] },
    ];
    expect(stubbed(openaiResponses, request)).toEqual({
      request: {
        ...request,
        input: [
          ...asFunction('c1', click, '[mem_1.0.0]'),
          ...asFunction('c2', { actions: [click, { type: 'wait' }] }, '[mem_3.0.0]'),
          ...small,
          // The reasoning led to a message besides the call, and would be left without it.
          reasoning,
          said,
          ...led,
        ],
      },
      originals: [screenshot, screenshot],
    });
  });

  it('take the reasoning that led only to a computer call with its screenshot', () => {
    const screenshot = { type: 'computer_screenshot', image_url: url.padEnd(1_200, 'A') };
    const input = [
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { type: 'computer_call', id: 'cu_1', call_id: 'c1', action: { type: 'wait' } },
      { type: 'computer_call_output', call_id: 'c1', output: screenshot },
    ];
    const conversation = view(openaiResponses, encoder.encode(JSON.stringify({ input })));
    const edit: Edit = { kind: 'replace-media', message: 2, part: 0, media: 0, stub: '[1]', memory: 'mem_1' };
    expect(openaiResponses.rules.mayEdit(conversation, edit)).toBe(true);
    expect(openaiResponses.rules.complete(conversation, [edit], false)).toEqual({
      status: 'ok',
      edits: [edit, { kind: 'drop-message', message: 0, memory: undefined }],
    });
  });

  it('are texts in Gemini, those of a response in its object', () => {
    const inline = { inlineData: { mimeType: 'image/png', data } };
    const block = { type: 'image', mimeType: 'image/png', data };
    const call = (id: string) => ({ functionCall: { id, name: 'look', args: {} } });
    const response = (id: string, rest: object) => ({ functionResponse: { id, name: 'look', ...rest } });
    const signed = { ...inline, thoughtSignature: 'c2lnbmVk' };
    const request = {
      contents: [
        { role: 'user', parts: [{ text: 'Look.' }, inline] },
        { role: 'model', parts: ['a', 'b', 'c', 'd'].map(call) },
        {
          role: 'user',
          parts: [
            response('a', { response: { output: 'Done.' }, parts: [inline] }),
            response('b', { response: { folded: 1 }, parts: [inline, { inlineData: {} }] }),
            response('c', { parts: [inline, inline] }),
            response('d', { response: { content: [block] } }),
          ],
        },
        { role: 'model', parts: [signed] },
      ],
    };
    expect(stubbed(gemini, request)).toEqual({
      request: {
        contents: [
          { role: 'user', parts: [{ text: 'Look.' }, { text: '[mem_0.1.0]' }] },
          { role: 'model', parts: ['a', 'b', 'c', 'd'].map(call) },
          {
            role: 'user',
            parts: [
              response('a', { response: { output: 'Done.', folded: ['[mem_2.0.0]'] } }),
              response('b', {
                response: { folded: 1, folded_2: ['[mem_2.1.0]'] },
                parts: [{ inlineData: {} }],
              }),
              response('c', { response: { folded: ['[mem_2.2.0]', '[mem_2.2.1]'] } }),
              response('d', { response: { content: [{ type: 'text', text: '[mem_2.3.0]' }] } }),
            ],
          },
          { role: 'model', parts: [signed] },
        ],
      },
      originals: [inline, inline, inline, inline, inline, block],
    });
  });

  it('are refused twice for one image', () => {
    const content = [{ type: 'image_url', image_url: { url } }];
    const conversation = view(
      openaiChat,
      encoder.encode(JSON.stringify({ messages: [{ role: 'user', content }] })),
    );
    const edit: Edit = {
      kind: 'replace-media',
      message: 0,
      part: 0,
      media: 0,
      stub: '[stub]',
      memory: 'mem_a',
    };
    expect(() => openaiChat.write(conversation, [edit, { ...edit }])).toThrow(
      'Two edits replace media 0 of part 0 of message 0.',
    );
    expect(() => openaiChat.write(conversation, [{ ...edit, media: 1 }])).toThrow(
      'An edit names media 1 of part 0 of message 0, which has none.',
    );
  });
});
