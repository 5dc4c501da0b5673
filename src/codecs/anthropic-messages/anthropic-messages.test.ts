import { messagesFixture } from '../../../test/support/codec-suite/anthropic-messages/fixture.ts';
import { codecSuite } from '../../../test/support/codec-suite/codec-suite.ts';
import { anthropicMessages } from './index.ts';

codecSuite(anthropicMessages, messagesFixture);
