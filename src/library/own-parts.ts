/**
 * Checks the results of a program's own triggers and strategies: they may throw, or return something else than their types say. Then the
 * request is sent unchanged, and the outcome names the one that failed. Its error may quote the conversation, and outcomes are logged, so
 * the outcome has only the kind of the error.
 */
import { shown } from '../checks.ts';
import { wordsOfPlace } from '../codecs/write-body.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { type Edit, lastMessageOf } from '../conversation/edit.ts';
import { isRecord } from '../conversation/json-scan.ts';
import { textsOf } from '../conversation/messages.ts';
import { placeKey } from '../conversation/turns.ts';
import { NotMeasured } from '../engine/demand.ts';
import { LeporelloError } from '../errors.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import type { FoldView, Strategy } from '../strategies/strategy.ts';
import type { Trigger } from '../triggers/trigger.ts';

const demandWords = 'undefined or { trigger, goal: { unit, target }, atMost, force }';

/** Returns a trigger that does the same, and throws `bad-config` with its name if the given one fails. */
export function checkedTrigger(trigger: Trigger): Trigger {
  const name = `The trigger ${trigger.name}`;
  return {
    name: trigger.name,
    demand(state) {
      try {
        const demand = trigger.demand(state);
        if (demand === undefined || isDemand(demand)) return demand;
        throw wrongResult(name, shown(demand), demandWords);
      } catch (error) {
        throw thrownBy(name, error);
      }
    },
  };
}

function isDemand(value: unknown): boolean {
  const goal = isRecord(value) ? value['goal'] : undefined;
  if (!isRecord(goal) || typeof goal['target'] !== 'number') return false;
  return goal['unit'] === 'tokens' || goal['unit'] === 'messages';
}

/**
 * Returns a strategy that does the same, and throws `bad-config` with its name if the given one fails. It leaves out
 * replacements of what earlier edits replaced: the given strategy need not know what earlier folds did, nor that it is asked several times for
 * one fold.
 */
export function checkedStrategy(strategy: Strategy): Strategy {
  const name = `The strategy ${strategy.name}`;
  return {
    ...strategy,
    // A class may define these as getters, which are not copied.
    name: strategy.name,
    reach: strategy.reach,
    propose(view) {
      try {
        return furtherEdits(name, view, checkedEdits(name, view, strategy.propose(view)));
      } catch (error) {
        throw thrownBy(name, error);
      }
    },
    ...(strategy.proposeInSteps && {
      *proposeInSteps(view) {
        try {
          return furtherEdits(name, view, checkedEdits(name, view, yield* strategy.proposeInSteps!(view)));
        } catch (error) {
          throw thrownBy(name, error);
        }
      },
    }),
  };
}

const editKinds: Readonly<Record<Edit['kind'], true>> = {
  'replace-text': true,
  'replace-input': true,
  'replace-media': true,
  'drop-part': true,
  'drop-message': true,
  'insert-message': true,
};

function checkedEdits(name: string, { conversation }: FoldView, edits: readonly Edit[]): readonly Edit[] {
  if (!Array.isArray(edits))
    throw wrongResult(name, `a value of the type ${typeof edits}`, 'a list of edits');
  const kinds = edits.map((edit: unknown) => (isRecord(edit) ? edit['kind'] : undefined));
  const wrong = kinds.findIndex((kind) => !Object.hasOwn(editKinds, String(kind)));
  if (wrong !== -1) {
    const words = `only ${Object.keys(editKinds).join(', ')}`;
    throw wrongResult(name, `an edit whose kind is ${shown(kinds[wrong])}`, words);
  }
  const lost = edits.find((edit) => !isIn(conversation, edit));
  if (lost)
    throw wrongResult(name, `an edit of ${wordsOfPlace(lost)}`, 'only edits of places that are there');
  return edits;
}

/** True if the conversation has the place of an edit. */
function isIn({ messages }: Conversation, edit: Edit): boolean {
  if (edit.kind === 'replace-text') {
    const { message, part, text } = edit.at;
    const found = messages[message]?.parts[part];
    return found !== undefined && textsOf(found)[text] !== undefined;
  }
  const message = messages[lastMessageOf(edit)];
  if (message === undefined) return false;
  return !('part' in edit) || message.parts[edit.part] !== undefined;
}

/** Returns the edits without replacements of what earlier edits replaced. Two replacements of one place are refused: they have no outcome. */
function furtherEdits(name: string, { edits: earlier }: FoldView, edits: readonly Edit[]): readonly Edit[] {
  const before = placesEdited(earlier);
  const replaced = { texts: new Set<string>(), inputs: new Set<string>(), media: new Set<string>() };
  return edits.filter((edit) => {
    const place = placeReplacedBy(edit);
    if (place === undefined) return true;
    const { kind, key } = place;
    if (replaced[kind].has(key)) {
      const words = `two edits that replace ${wordsOfPlace(edit)}`;
      throw wrongResult(name, words, 'at most one for each place');
    }
    replaced[kind].add(key);
    return !before[kind].has(key);
  });
}

/** Returns the place that an edit replaces, by its key among the places of its kind; undefined for one that drops or inserts. */
function placeReplacedBy(
  edit: Edit,
): { readonly kind: 'texts' | 'inputs' | 'media'; readonly key: string } | undefined {
  if (edit.kind === 'replace-text') return { kind: 'texts', key: `${placeKey(edit.at)}.${edit.at.text}` };
  if (edit.kind === 'replace-input') return { kind: 'inputs', key: placeKey(edit) };
  return edit.kind === 'replace-media'
    ? { kind: 'media', key: `${placeKey(edit)}.${edit.media}` }
    : undefined;
}

function thrownBy(name: string, error: unknown): unknown {
  // After the first one, the engine computes what the state lacks, and asks the trigger again.
  if (error instanceof NotMeasured || LeporelloError.isInstance(error)) return error;
  const kind = error instanceof Error ? error.name : 'a value that is no Error';
  return new LeporelloError('bad-config', `${name} threw ${kind}, but must not throw.`, { cause: error });
}

function wrongResult(name: string, result: string, words: string): LeporelloError {
  return new LeporelloError('bad-config', `${name} returned ${result}, but must return ${words}.`);
}
