import { codecSuite } from '../../testing/codec-suite/codec-suite.ts';
import { geminiFixture } from '../../testing/codec-suite/gemini/fixture.ts';
import { gemini } from './index.ts';

codecSuite(gemini, geminiFixture);
