/** Defines what a language gives to the planted conversations: templates of planted sentences, and sentences that say nothing that lasts. */

export type Domain = 'research' | 'coding' | 'support' | 'data';

export const domains: readonly Domain[] = ['research', 'coding', 'support', 'data'];

/** A template: `{t}` is a thing, `{n}` a number, `{p}` a phrase, `{u}` another thing. */
export type Templates = readonly string[];

/** Templates with even places are for development, those with odd places are held out. */
export type Kit = {
  readonly language: string;
  /** The locale, for sentences. */
  readonly locale: string;
  /** Beginnings and ends of names of things, by domain. */
  readonly things: Readonly<Record<Domain, readonly [starts: readonly string[], ends: readonly string[]]>>;
  /** Phrases that tell a cause or a state. */
  readonly phrases: Readonly<Record<Domain, readonly string[]>>;
  /** Forms of a number: `{d}` stands for its digits. */
  readonly numbers: Readonly<Record<Domain, readonly string[]>>;
  readonly goals: Templates;
  readonly demands: Templates;
  readonly findings: Readonly<Record<Domain, Templates>>;
  readonly decisions: Templates;
  readonly open: Templates;
  readonly outcomes: Templates;
  /** Items of a plan. */
  readonly plans: Templates;
  /** Sentences that an agent says before a call. */
  readonly announcements: Templates;
  /** Sentences of a user who asks for nothing new. */
  readonly small: readonly string[];
  /** Sentences of pages and records that nobody needs. */
  readonly prose: Templates;
};
