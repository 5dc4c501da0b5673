import { messagesFixture } from '../../testing/codec-suite/anthropic-messages/fixture.ts';
import { codecSuite } from '../../testing/codec-suite/codec-suite.ts';
import { anthropicMessages } from './index.ts';

codecSuite(anthropicMessages, messagesFixture);
