import type { Config } from '../../config/schema.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import type { Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import { watchFiles } from '../../kit/watch-files.ts';
import { type LabelRules, NO_RULES } from '../../placement/nodes/label-rules.ts';
import type { Reporting } from '../reload-on-change.ts';
import { type ReadLabelRules, readLabelRules } from './files.ts';

/** The interval at which a directory that cannot be read is tried again. */
const AGAIN_MS = 2_000;
const NOTHING: ReadLabelRules = { rules: NO_RULES, problems: [] };

/**
 * Reads the rules. There are none without a directory, or without the node controller.
 *
 * @throws ConfigurationError if the directory cannot be read: without known rules, labels would be removed
 */
export async function loadLabelRules(
  { nodeLabels: { directory }, loops }: Pick<Config, 'nodeLabels' | 'loops'>,
  clock: Clock,
) {
  const isUsed = directory !== '' && loops.includes('labels');
  let current = isUsed ? await readOrRefuse(directory) : NOTHING;
  let running: Promise<unknown> = Promise.resolve();

  /** Reads the directory again, until that succeeds. Meanwhile the former rules stay in force. */
  async function untilRead(signal: AbortSignal, onRead: () => void): Promise<void> {
    for (let isRead = false; !isRead && !signal.aborted; ) {
      const before = textOf(current);
      try {
        current = await readLabelRules(directory);
        isRead = true;
      } catch (error) {
        current = { rules: current.rules, problems: [`${messageOf(error)}; the last valid rules stay in use`] };
      }
      if (textOf(current) !== before) onRead();
      if (!isRead) await clock.delay(AGAIN_MS, signal);
    }
  }

  return {
    rules: (): LabelRules => current.rules,
    problems: (): string[] => current.problems.map(named),
    /**
     * Keeps the rules up to date while `run` works, and reports refused files. Returns what writes the Event about them: call it at the
     * beginning of each term, because only the leader writes Events.
     */
    async follow({ log, events, regarding, signal }: Reporting, onChange: () => void): Promise<() => void> {
      const report = () => {
        if (current.problems.length === 0) return;
        const note = `some label rules are refused, all others apply: ${current.problems.map(named).join('; ')}`;
        events.emit({ regarding, type: 'Warning', reason: 'ConfigurationRejected', action: 'Labelling', note });
      };
      const logProblems = () => {
        const problems = current.problems.map(named);
        if (problems.length > 0) log.error({ problems }, 'some label rules are refused; all others apply');
      };
      const onRead = () => {
        if (signal.aborted) return;
        log.info({ rules: current.rules.rules.length }, 'label rules reloaded');
        for (const tell of [logProblems, report, onChange]) tell();
      };
      logProblems();
      if (!isUsed) return report;
      const readAgain = async (isChanged: boolean) => {
        running = running.then(() => untilRead(signal, onRead));
        // The first reading is not waited for: it is repeated until it succeeds.
        if (isChanged) await running;
      };
      await watchFiles(() => [directory], readAgain, { clock, signal });
      return report;
    },
  };
}

/**
 * Reads a directory once.
 *
 * @throws ConfigurationError if it cannot be read
 */
export async function readOrRefuse(directory: string): Promise<ReadLabelRules> {
  try {
    return await readLabelRules(directory);
  } catch (error) {
    throw new ConfigurationError([named(messageOf(error))]);
  }
}

function named(problem: string): string {
  return `nodeLabels.directory: ${problem}`;
}

function textOf({ rules: { rules, refused }, problems }: ReadLabelRules): string {
  return JSON.stringify([rules, [...refused], problems]);
}
