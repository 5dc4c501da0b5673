import { chatFixture } from '../../testing/codec-suite/openai-chat/fixture.ts';
import { codecSuite } from '../../testing/codec-suite/codec-suite.ts';
import { openaiChat } from './index.ts';

codecSuite(openaiChat, chatFixture);
