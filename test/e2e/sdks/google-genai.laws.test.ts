import { type Content, type GenerateContentResponse, GoogleGenAI, type Part } from '@google/genai';
import { parameters, tool } from './scenario.ts';
import { type ClientOptions, collect, type ReceivedReply, type SdkClient, sdkSuite } from './suite.ts';

const model = 'gemini-3-pro';
const config = { tools: [{ functionDeclarations: [{ ...tool, parametersJsonSchema: parameters }] }] };

/** One reply, collected from its chunks; a reply that does not stream is one chunk. */
type Reply = {
  readonly parts: readonly Part[];
  readonly received: ReceivedReply;
  readonly chunks: readonly GenerateContentResponse[];
};

async function replyOf(chunks: Iterable<GenerateContentResponse> | AsyncIterable<GenerateContentResponse>) {
  const all = await collect(chunks);
  const usage = all.at(-1)?.usageMetadata;
  const parts = all.flatMap(({ candidates }) => candidates?.[0]?.content?.parts ?? []);
  return {
    parts,
    received: {
      text: parts.map(({ text, thought }) => (thought ? '' : (text ?? ''))).join(''),
      finish: all.at(-1)?.candidates?.[0]?.finishReason,
      input: usage?.promptTokenCount,
      output: (usage?.candidatesTokenCount ?? Number.NaN) + (usage?.thoughtsTokenCount ?? 0),
    },
    chunks: all,
  } satisfies Reply;
}

function answersTo(parts: readonly Part[], runTool: (path: string) => string): Part[] {
  return parts.flatMap(({ functionCall: call }): Part[] => {
    if (!call) return [];
    const output = runTool(String(call.args?.['path']));
    const id = call.id === undefined ? {} : { id: call.id };
    return [{ functionResponse: { ...id, name: call.name ?? '', response: { output } } }];
  });
}

const clientOf = ({ url, fetch }: Pick<ClientOptions, 'url' | 'fetch'>) =>
  new GoogleGenAI({ apiKey: 'dummy', httpOptions: { baseUrl: url, ...(fetch && { fetch }) } });

const finish = { calls: 'STOP', stop: 'STOP' };

const chats: SdkClient = {
  finish,
  start({ url, fetch, streaming, runTool }) {
    const chat = clientOf({ url, fetch }).chats.create({ model, config });
    const seen: unknown[] = [];
    return async (userText) => {
      const replies = [];
      let message: string | Part[] = userText;
      for (;;) {
        const reply: Reply = await replyOf(
          streaming ? await chat.sendMessageStream({ message }) : [await chat.sendMessage({ message })],
        );
        replies.push(reply.received);
        seen.push(reply.chunks);
        message = answersTo(reply.parts, runTool);
        if (message.length === 0) return { replies, everything: [seen, chat.getHistory()] };
      }
    };
  },
};

const models: SdkClient = {
  finish,
  start({ url, fetch, streaming, runTool }) {
    const client = clientOf({ url, fetch });
    const contents: Content[] = [];
    const seen: unknown[] = [];
    return async (userText) => {
      const replies = [];
      let parts: Part[] = [{ text: userText }];
      for (;;) {
        contents.push({ role: 'user', parts });
        const request = { model, contents, config };
        const reply = await replyOf(
          streaming
            ? await client.models.generateContentStream(request)
            : [await client.models.generateContent(request)],
        );
        replies.push(reply.received);
        seen.push(reply.chunks);
        contents.push({ role: 'model', parts: reply.parts });
        parts = answersTo(reply.parts, runTool);
        if (parts.length === 0) return { replies, everything: [seen, contents] };
      }
    };
  },
};

sdkSuite('@google/genai, chats', chats);
sdkSuite('@google/genai, generateContent', models);
