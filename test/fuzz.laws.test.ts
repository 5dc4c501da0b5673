/** Plays a few of the bodies of `npm run fuzz` on every route and expects no failure. */
import { describe, expect, it } from 'vitest';
import { openGateways } from './fuzz/gateways.ts';
import { play, routes } from './fuzz/play.ts';

const conversations = 20;

describe('mutated conversations', () => {
  it.each(routes.map((route) => [route.name, route] as const))(
    'on the route %s are sent valid, lose nothing and get complete replies',
    async (_, route) => {
      const gateways = openGateways();
      const failures: string[] = [];
      let folded = 0;
      for (let seed = 1; seed <= conversations; seed++) {
        const played = await play(gateways, route, seed);
        failures.push(...played.failures.map((failure) => `seed ${seed}: ${failure}`));
        folded += played.folded;
      }
      expect(failures).toEqual([]);
      expect(folded).toBeGreaterThan(conversations / 2);
    },
  );
});
