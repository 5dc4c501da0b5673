import { codecSuite } from '../../testing/codec-suite/codec-suite.ts';
import { responsesFixture } from '../../testing/codec-suite/openai-responses/fixture.ts';
import { openaiResponses } from './index.ts';

codecSuite(openaiResponses, responsesFixture);
