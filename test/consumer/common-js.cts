/** A CommonJS program. Node 20.19, 22.12 and newer load the package's ES modules with `require`. */
import leporello = require('leporello');
import fetching = require('leporello/fetch');
import type { Leporello } from 'leporello';

const own: Leporello = leporello.createLeporello();
export const send: typeof fetch = fetching.createLeporelloFetch();
export const tool: string = own.recallTool.name;
