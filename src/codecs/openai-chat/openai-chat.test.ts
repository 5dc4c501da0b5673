import { chatFixture } from '../../../test/support/codec-suite/openai-chat/fixture.ts';
import { codecSuite } from '../../../test/support/codec-suite/codec-suite.ts';
import { openaiChat } from './index.ts';

codecSuite(openaiChat, chatFixture);
