/** A request about the weather, with a tool, and its count in any format. */
import type { Codec, ReadBlock } from '../../src/codecs/codec.ts';
import { sha256 } from '../../src/store/encrypted-store.ts';
import { conversationCounter } from '../../src/tokens/count-conversation.ts';
import { loadTokenCounter } from '../../src/tokens/load-counter.ts';

/** Returns the tokens of a request to the model; `indent` is that of its JSON. */
export async function counted(
  codec: Codec,
  model: string,
  request: object,
  indent?: number,
): Promise<number> {
  const body = new TextEncoder().encode(JSON.stringify({ model, ...request }, undefined, indent));
  const conversation = codec.read(body, { digest: sha256, blocks: new Map<string, ReadBlock>() });
  return conversationCounter(await loadTokenCounter(model)).total(conversation);
}

export const weather = {
  name: 'get_current_weather',
  description: 'Get the current weather in a given location',
  parameters: {
    type: 'object',
    properties: {
      location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' },
      unit: {
        type: 'string',
        description: 'The unit of temperature to return',
        enum: ['celsius', 'fahrenheit'],
      },
    },
    required: ['location'],
  },
};

export const instructions = 'You are a helpful assistant that can answer to questions about the weather.';
export const question = "What's the weather like in San Francisco?";
