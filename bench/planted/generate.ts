/**
 * Generates conversations with planted sentences: a user, an agent and its tools work on some sub-goals, and results are mostly noise. Seeded,
 * without a model. It shares no code and no list of words with what it measures.
 */
import { chinese } from './chinese.ts';
import { english } from './english.ts';
import { german } from './german.ts';
import { japanese } from './japanese.ts';
import { type Domain, domains, type Kit, type Templates } from './kit.ts';
import { spanish } from './spanish.ts';

/** The kind of a planted sentence. `result finding`: it stands in a result only. */
export type FactKind = 'finding' | 'result finding' | 'decision' | 'demand' | 'open end' | 'outcome';

export type Fact = {
  readonly kind: FactKind;
  readonly text: string;
  /** The thing and its value, which together are the fact. */
  readonly keys: readonly string[];
};

/** A call with what was said before it. */
export type PlantedCall = {
  readonly said: string | undefined;
  readonly tool: string;
  readonly input: string;
  readonly result: string;
};

/** A sub-goal of the agent. */
export type Group = {
  readonly goal: string;
  /** The user's words at its start, if the user spoke. */
  readonly user: string | undefined;
  readonly calls: readonly PlantedCall[];
  /** The reply at its end; undefined if it ends with the verdict of its last result. */
  readonly reply: string | undefined;
  readonly outcome: Fact;
};

export type PlantedConversation = {
  readonly language: string;
  readonly domain: Domain;
  /** `held out` templates were not looked at when the extractor was written. */
  readonly half: 'development' | 'held out';
  readonly groups: readonly Group[];
  readonly facts: readonly Fact[];
};

const kits: readonly Kit[] = [english, german, spanish, japanese, chinese];
const groupCount = 8;

/** Generates `count` conversations: languages and domains in turn, half of them with templates held out. */
export function plantedConversations(count: number): readonly PlantedConversation[] {
  return Array.from({ length: count }, (_, at) => {
    const kit = kits[at % kits.length]!;
    const turn = Math.floor(at / kits.length);
    return conversation(kit, domains[turn % domains.length]!, Math.floor(turn / domains.length) % 2, at + 1);
  });
}

type Source = ReturnType<typeof sourceOf>;

function sourceOf(kit: Kit, domain: Domain, half: number, seed: number) {
  const random = randomOf(seed);
  const int = (below: number): number => Math.floor(random() * below);
  const pick = <T>(list: readonly T[]): T => list[int(list.length)]!;
  const ofHalf = <T>(list: readonly T[]): readonly T[] => list.filter((_, at) => at % 2 === half);
  const [starts, ends] = kit.things[domain];
  const things = shuffled(
    starts.flatMap((start) => ends.map((end) => start + end)),
    int,
  );
  const noise = things.splice(-8);
  const thing = (): string => things.pop() ?? pick(noise);
  const number = (): string => pick(kit.numbers[domain]).replace('{d}', String(10 + int(20)));
  const phrase = (): string => pick(ofHalf(kit.phrases[domain]));
  const other = (): string => pick(noise);

  /** Fills a template with a new thing. */
  function fact(kind: FactKind, templates: Templates, t = thing()): Fact {
    const template = pick(ofHalf(templates));
    const n = number();
    const p = phrase();
    const text = fill(template, { t, n, p, u: other() });
    const value = template.includes('{n}') ? [n] : template.includes('{p}') ? [p] : [];
    return { kind, text, keys: [t, ...value] };
  }

  return {
    kit,
    domain,
    int,
    pick,
    ofHalf,
    thing,
    other,
    fact,
    noisy: (templates: Templates, u = other()) =>
      fill(pick(ofHalf(templates)), { u, t: u, n: number(), p: '' }),
  };
}

function conversation(kit: Kit, domain: Domain, half: number, seed: number): PlantedConversation {
  const source = sourceOf(kit, domain, half, seed);
  const { fact, pick, int, noisy, ofHalf } = source;
  const facts: Fact[] = [];
  const plant = (one: Fact): Fact => {
    facts.push(one);
    return one;
  };
  const planThing = source.thing();
  const hasPlan = seed % 2 === 0;
  const groups = Array.from({ length: groupCount }, (_, at): Group => {
    const isLast = at === groupCount - 1;
    const goal = noisy(at === 0 ? kit.goals : kit.plans, source.thing());
    const demands = [0, 1, 3, 5].includes(at) ? [plant(fact('demand', kit.demands))] : [];
    const small = at % 2 === 0 || demands.length > 0 ? [pick(ofHalf(kit.small))] : [];
    const user =
      at === 0
        ? `${goal}\n${demands[0]!.text}`
        : demands.length + small.length === 0
          ? undefined
          : [...small, ...demands.map(({ text }) => text)].join(pick([' ', '\n']));
    const planted = [
      ...(at < 6 ? [plant(fact('finding', kit.findings[domain]))] : []),
      ...(at === 2 || at === 5 ? [plant(fact('decision', kit.decisions))] : []),
    ];
    const inResult =
      at % 2 === 0 && !isLast ? plant(fact('result finding', kit.findings[domain])) : undefined;
    const outcome = plant(fact('outcome', kit.outcomes));
    const isVerdict = at % 3 === 1;
    const open = isLast || at === 3 ? [plant(fact('open end', kit.open))] : [];
    const calls = callsOf(source, { planted, inResult, verdict: isVerdict ? outcome : undefined });
    if (hasPlan && (at === 0 || at === 4)) calls.unshift(planCall(source, planThing, at));
    const after = int(2) === 0 ? [noisy(kit.announcements)] : [];
    const reply = [...(isVerdict ? [] : [outcome.text]), ...open.map(({ text }) => text)];
    return {
      goal,
      user,
      calls,
      reply: reply.length === 0 ? undefined : [...reply, ...(isLast ? [] : after)].join(' '),
      outcome,
    };
  });
  if (hasPlan) {
    const text = fill(ofHalf(kit.plans)[0]!, { t: planThing, n: '', p: '', u: '' });
    facts.push({ kind: 'open end', text, keys: [text] });
  }
  return { language: kit.language, domain, half: half === 0 ? 'development' : 'held out', groups, facts };
}

type Planting = {
  readonly planted: readonly Fact[];
  readonly inResult: Fact | undefined;
  readonly verdict: Fact | undefined;
};

/** Makes the calls of a sub-goal. The agent says what it found before the next call. */
function callsOf(source: Source, { planted, inResult, verdict }: Planting): PlantedCall[] {
  const { int, kit, noisy, other } = source;
  const count = 4 + int(3);
  const buried = 1 + int(count - 2);
  return Array.from({ length: count }, (_, at) => {
    const u = other();
    const told = planted.filter((_fact, place) => at === 2 + place);
    const said =
      told.length > 0
        ? [...told.map(({ text }) => text), ...(int(2) === 0 ? [noisy(kit.announcements, u)] : [])].join(' ')
        : int(3) > 0
          ? noisy(kit.announcements, u)
          : undefined;
    const fact = at === buried ? inResult : undefined;
    // In seven of ten cases a later call names a part of what a result showed.
    const isUsed = inResult !== undefined && at === buried + 1 && int(10) < 7;
    const about = isUsed ? inResult.keys[int(inResult.keys.length)]! : u;
    const call = { said, ...callOf(source, about, fact) };
    return at === count - 1 && verdict ? { ...call, result: `${call.result}\n${verdict.text}` } : call;
  });
}

/** Makes a call of the domain with its result; the fact is somewhere in the result. */
function callOf(source: Source, about: string, fact: Fact | undefined) {
  const { domain, int, kit, noisy } = source;
  const report = fact !== undefined && int(2) === 0;
  if (report) {
    const around = Array.from({ length: 4 }, () => noisy(kit.prose));
    return {
      tool: 'ask_agent',
      input: JSON.stringify({ agent: 'researcher', question: about }),
      result: spread(around, fact.text, int).join(' '),
    };
  }
  const tools: Readonly<Record<Domain, readonly [tool: string, key: string]>> = {
    research: ['open_page', 'url'],
    coding: ['bash', 'command'],
    support: ['lookup', 'query'],
    data: ['run_sql', 'sql'],
  };
  const [tool, key] = tools[domain];
  const value =
    domain === 'coding' ? `cat src/${about}.ts` : domain === 'data' ? `select ${about} from facts` : about;
  return { tool, input: JSON.stringify({ [key]: value }), result: resultOf(source, fact) };
}

function resultOf(source: Source, fact: Fact | undefined): string {
  const { domain, int, kit, noisy, other } = source;
  const planted = fact === undefined ? [] : [fact.text];
  switch (domain) {
    case 'research': {
      const pages = lines(14 + int(12), () => noisy(kit.prose));
      return (fact ? spread(pages, fact.text, int) : pages).join(int(2) === 0 ? ' ' : '\n');
    }
    case 'coding': {
      const code = lines(
        30 + int(30),
        (at) =>
          `${String(at + 1).padStart(4)}  const ${word(int)}${at} = ${word(int)}(${word(int)}, ${int(900)});`,
      );
      return (fact ? spread(code, `  // ${fact.text}`, int) : code).join('\n');
    }
    case 'support': {
      const fields = lines(14 + int(10), () => [
        word(int),
        int(2) === 0 ? int(90_000) : `${other()} ${word(int)}`,
      ]);
      return JSON.stringify({ ...Object.fromEntries(fields), note: planted[0] ?? noisy(kit.prose) });
    }
    case 'data': {
      const rows = lines(30 + int(30), () => `${word(int)},${int(10_000)},${int(100)}.${int(10)},${other()}`);
      return ['key,count,share,name', ...rows, ...planted].join('\n');
    }
  }
}

function lines<T>(count: number, line: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => line(at));
}

function planCall(source: Source, thing: string, at: number): PlantedCall {
  const { kit, ofHalf, noisy, other } = source;
  const [open = ''] = ofHalf(kit.plans);
  const todos = [
    { content: noisy(kit.plans, other()), status: at === 0 ? 'in_progress' : 'completed' },
    { content: fill(open, { t: thing, n: '', p: '', u: '' }), status: 'pending' },
  ];
  return { said: undefined, tool: 'todo_write', input: JSON.stringify({ todos }), result: 'ok' };
}

/** Inserts a text at a random place that is neither the first nor the last. */
function spread(list: readonly string[], text: string, int: (below: number) => number): readonly string[] {
  const at = 1 + int(list.length - 1);
  return [...list.slice(0, at), text, ...list.slice(at)];
}

const syllables = ['ba', 'do', 'ke', 'lu', 'mi', 'no', 'ra', 'si', 'ta', 've', 'zo', 'fe'];

function word(int: (below: number) => number): string {
  return Array.from({ length: 3 }, () => syllables[int(syllables.length)]!).join('');
}

function fill(template: string, values: Readonly<Record<'t' | 'n' | 'p' | 'u', string>>): string {
  return template.replaceAll(/\{([tnpu])\}/g, (_, key: 't' | 'n' | 'p' | 'u') => values[key]);
}

function shuffled<T>(list: readonly T[], int: (below: number) => number): T[] {
  const mixed = [...list];
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = int(at + 1);
    [mixed[at], mixed[other]] = [mixed[other]!, mixed[at]!];
  }
  return mixed;
}

/** A small random generator (mulberry32), the same on every machine. */
function randomOf(seed: number): () => number {
  let state = (seed * 0x9e3779b9) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
