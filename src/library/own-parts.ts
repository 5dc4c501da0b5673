/**
 * Checks the results of a program's own triggers and strategies: they may throw, or return something else than their types say. Then the
 * request is sent unchanged, and the outcome names the one that failed. Its error may quote the conversation, and outcomes are logged, so
 * the outcome has only the kind of the error.
 */
import { shown } from '../checks.ts';
import type { Edit } from '../conversation/edit.ts';
import { isRecord } from '../conversation/json-scan.ts';
import { placeKey } from '../conversation/turns.ts';
import { NotMeasured } from '../engine/demand.ts';
import { LeporelloError } from '../errors.ts';
import { placesEdited } from '../strategies/lib/editable-texts.ts';
import type { Strategy } from '../strategies/strategy.ts';
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
 * Returns a strategy that does the same, and throws `bad-config` with its name if the given one fails. It leaves out edits of places that
 * earlier edits changed: the given strategy need not know what earlier folds did, nor that it is asked several times for one fold.
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
        return furtherEdits(view.edits, checkedEdits(name, strategy.propose(view)));
      } catch (error) {
        throw thrownBy(name, error);
      }
    },
    ...(strategy.proposeInSteps && {
      *proposeInSteps(view) {
        try {
          return furtherEdits(view.edits, checkedEdits(name, yield* strategy.proposeInSteps!(view)));
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

function checkedEdits(name: string, edits: readonly Edit[]): readonly Edit[] {
  if (!Array.isArray(edits))
    throw wrongResult(name, `a value of the type ${typeof edits}`, 'a list of edits');
  const kinds = edits.map((edit: unknown) => (isRecord(edit) ? edit['kind'] : undefined));
  const wrong = kinds.findIndex((kind) => !Object.hasOwn(editKinds, String(kind)));
  if (wrong === -1) return edits;
  const words = `only ${Object.keys(editKinds).join(', ')}`;
  throw wrongResult(name, `an edit whose kind is ${shown(kinds[wrong])}`, words);
}

function furtherEdits(earlier: readonly Edit[], edits: readonly Edit[]): readonly Edit[] {
  const { messages, parts, texts, inputs, media } = placesEdited(earlier);
  const isDropped = (message: number, part: number) =>
    messages.has(message) || parts.has(placeKey({ message, part }));
  return edits.filter((edit) => {
    switch (edit.kind) {
      case 'replace-text':
        return (
          !isDropped(edit.at.message, edit.at.part) && !texts.has(`${placeKey(edit.at)}.${edit.at.text}`)
        );
      case 'replace-input':
        return !isDropped(edit.message, edit.part) && !inputs.has(placeKey(edit));
      case 'replace-media':
        return !isDropped(edit.message, edit.part) && !media.has(`${placeKey(edit)}.${edit.media}`);
      case 'drop-part':
        return !isDropped(edit.message, edit.part);
      case 'drop-message':
        return !messages.has(edit.message);
      case 'insert-message':
        return true;
    }
  });
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
