import { codecSuite } from '../../../test/support/codec-suite/codec-suite.ts';
import { responsesFixture } from '../../../test/support/codec-suite/openai-responses/fixture.ts';
import { openaiResponses } from './index.ts';

codecSuite(openaiResponses, responsesFixture);
