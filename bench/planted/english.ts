/** Templates of planted conversations in English. */
import type { Kit } from './kit.ts';

export const english: Kit = {
  language: 'English',
  locale: 'en',
  things: {
    research: [
      ['Harrow', 'Kelding', 'Marston', 'Oakvale', 'Brindle', 'Thornby', 'Selwick', 'Dunmore'],
      [' Mill', ' Institute', ' Harbour', ' Press', ' Foundry', ' Archive'],
    ],
    coding: [
      ['parse', 'flush', 'merge', 'route', 'sign', 'chunk', 'retry', 'index'],
      ['Queue', 'Header', 'Session', 'Ledger', 'Cursor', 'Bundle'],
    ],
    support: [
      ['order A-', 'ticket T-', 'invoice R-', 'parcel P-'],
      ['4711', '2093', '8830', '5127', '6648', '3902', '7215', '1186'],
    ],
    data: [
      ['net_', 'gross_', 'daily_', 'churn_', 'region_', 'cohort_'],
      ['revenue', 'visits', 'refunds', 'signups', 'margin', 'latency'],
    ],
  },
  phrases: {
    research: [
      'a family of bookbinders',
      'the flood in the lower town',
      'a loan from the city',
      'two rival heirs',
    ],
    coding: [
      'a lock that is never released',
      'an off-by-one at the last page',
      'a stale copy of the config',
      'the wrong time zone',
    ],
    support: ['a damaged label', 'an expired card', 'a wrong house number', 'a double booking'],
    data: [
      'late events of the mobile app',
      'duplicated rows of one importer',
      'a changed currency',
      'missing weekends',
    ],
  },
  numbers: {
    research: ['in 18{d}', '{d} members', '{d} hectares'],
    coding: ['{d} ms', 'line {d}', '{d} kB'],
    support: ['{d}.50 euros', 'on May {d}', '{d} days'],
    data: ['{d} %', '{d} rows', '{d}.4 points'],
  },
  goals: [
    'Find out all there is about {t} and write it up for me.',
    'I need a clear picture of {t}; please look into it.',
  ],
  demands: [
    'Never mention {t} in anything that goes to a customer.',
    'The total for {t} has to stay below {n}.',
    'Please use metric units and the spelling "{t}" throughout.',
    'Ask me before you touch {t}.',
    'For {t}, {n} is the upper limit and not a suggestion.',
    "don't check {t} in, I want to look at it first",
    'Round everything about {t} to whole numbers.',
    'Anna reads what you write on {t} before anybody else does.',
  ],
  findings: {
    research: [
      '{t} goes back to {p}, whatever the official site says.',
      'According to two sources, {t} had {n} at its height.',
      'So {t} lost its charter because of {p}.',
      'The only figure for {t} that both catalogues agree on: {n}.',
      '{p}: that is who stood behind {t} at the end.',
      'Records put {t} at {n}.',
    ],
    coding: [
      'The crash in {t} comes from {p}.',
      '{t} takes {n}, ten times what its callers expect.',
      "It's {p} that breaks {t}.",
      'Everything in {t} hinges on {n}.',
      '{t} is innocent; the culprit is {p} further up.',
      'Measured again: {t} needs {n}.',
    ],
    support: [
      '{t} was held back by {p}.',
      'For {t} the customer paid {n}.',
      'The reason behind {t} is {p}.',
      '{t} shows {n} in both systems.',
      'Nothing wrong with {t} except {p}.',
      'Our partner confirms {n} for {t}.',
    ],
    data: [
      'The dip in {t} is {p}, not the campaign.',
      '{t} moved by {n} between the two quarters.',
      'What distorts {t}: {p}.',
      'Corrected, {t} comes to {n}.',
      '{t} cannot be trusted before March, given {p}.',
      'Only {n} of {t} survive the filter.',
    ],
  },
  decisions: [
    'We go with {t} and leave {u} aside, given {p}.',
    "I'd rather keep {t} as it is: {p} weighs more.",
    '{t} it is, then; {p} speaks against {u}.',
    'Settled on {t} over {u}, on account of {p}.',
  ],
  open: [
    'Still open: whether {t} really had {n}.',
    'Nobody has looked at {n} for {t} yet.',
    'What remains is {t}, where {n} is unexplained.',
    'Not yet checked: {n} for {t}.',
  ],
  outcomes: [
    'Done: {t} now stands at {n}.',
    'That settles {t}, with {n} as the result.',
    '{t} works again, {n} in the last run.',
    'All of {t} is through; final value {n}.',
  ],
  plans: [
    'Compare {t} with last year',
    'Write the section on {t}',
    'Ask the owner of {t}',
    'Repeat the run for {t}',
  ],
  announcements: [
    'Let me look at {u} next.',
    'Now I will open {u}.',
    "I'll check {u} first, then go on.",
    'Next, {u}.',
    'Looking at {u} now to see how it fits in.',
    'Let me search for {u}.',
  ],
  small: ['ok, go on', 'thanks, continue please', 'sounds good', 'fine with me', 'yes please', 'great'],
  prose: [
    'The area around {u} has been described many times, among others by a traveller who spent {n} there.',
    '{u} is one of several entries of this kind in the list.',
    'Visitors of {u} are asked to use the side entrance.',
    'A newer overview mentions {u} only in passing, with {n}.',
    'For terms of use and contact see the page of {u}.',
    'The table below repeats what was said about {u} in earlier editions.',
    'This section needs more references.',
    'Similar cases are known from {u} and its neighbours.',
  ],
};
