import { codecSuite } from '../../../test/support/codec-suite/codec-suite.ts';
import { geminiFixture } from '../../../test/support/codec-suite/gemini/fixture.ts';
import { gemini } from './index.ts';

codecSuite(gemini, geminiFixture);
