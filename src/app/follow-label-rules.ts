import { constants } from 'node:fs';
import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Config } from '../config/schema.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import type { Clock } from '../kit/clock.ts';
import { codeOf, messageOf } from '../kit/errors.ts';
import { isLabelName, isLabelNamespace, isReservedKey } from '../kit/label-syntax.ts';
import { printable } from '../kit/printable.ts';
import { watchFiles } from '../kit/watch-files.ts';
import { type LabelRules, NO_RULES, type RuleFile, readRules } from '../placement/nodes/label-rules.ts';
import type { Reporting } from './reload-on-change.ts';

const MAX_FILE = 64 * 1024;
/** How often the directory is read again because something in it disappeared meanwhile, as when a mount is swapped. */
const ATTEMPTS = 5;
/** Temporary files of editors, and hidden files. vim creates `4913` to test whether it may write. */
const TEMPORARY = /^\.|~$|^#.*#$|^4913$/;
const SHOWN_BYTES = 300;

/** The content of a directory. */
export type ReadLabelRules = {
  readonly rules: LabelRules;
  readonly problems: readonly string[];
};

type FoundRules = { readonly files: RuleFile[]; readonly problems: string[]; vanished: boolean };

/**
 * Reads the files `<namespace>/<label>` of a directory. It may be a mounted ConfigMap: `..data` counts as a hidden file, and links
 * are followed. A file that disappears while the directory is read counts as absent.
 *
 * @throws Error if the directory, or one of its directories, cannot be read
 */
export async function readLabelRules(directory: string): Promise<ReadLabelRules> {
  for (let attempt = 1; ; attempt++) {
    const found = await look(directory);
    if (found.vanished && attempt < ATTEMPTS) continue;
    const { rules, problems } = readRules(found.files);
    return { rules, problems: [...found.problems, ...problems] };
  }
}

async function look(directory: string): Promise<FoundRules> {
  const found: FoundRules = { files: [], problems: [], vanished: false };
  for (const namespace of await namesIn(directory)) {
    const path = join(directory, namespace);
    try {
      if (!(await stat(path)).isDirectory()) refuse(found, path, 'is not a directory; expected <namespace>/<label>');
      else if (!isLabelNamespace(namespace)) refuse(found, path, 'expected the name of a domain, such as example.com');
      else if (isReservedKey(`${namespace}/`))
        refuse(found, path, 'is reserved for Kubernetes; expected another domain');
      else await lookInto(path, namespace, found);
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw new Error(`${shownPath(path)}: cannot be read (${codeOf(error)})`);
      found.vanished = true;
    }
  }
  return found;
}

async function lookInto(directory: string, namespace: string, found: FoundRules): Promise<void> {
  for (const name of (await readdir(directory)).sort()) {
    if (TEMPORARY.test(name)) continue;
    const path = join(directory, name);
    if (!isLabelName(name)) {
      refuse(found, path, 'expected the name of a label: letters, digits, "-", "_" and "." (63 at most)');
      continue;
    }
    const read = await readFile(path);
    if (read === undefined) found.vanished = true;
    else found.files.push({ label: `${namespace}/${name}`, file: shownPath(path), ...read });
  }
}

async function readFile(path: string): Promise<{ text: string } | { problem: string } | undefined> {
  try {
    const stats = await stat(path);
    // Reading a pipe would block.
    if (stats.isDirectory()) return { problem: 'is a directory; expected <namespace>/<label>, no deeper' };
    if (!stats.isFile()) return { problem: 'is not a file' };
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const content = await buffer(handle.createReadStream({ end: MAX_FILE }));
    return content.length > MAX_FILE ? { problem: `is larger than ${MAX_FILE} bytes` } : { text: content.toString() };
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? undefined : { problem: `cannot be read (${codeOf(error)})` };
  }
}

/** Returns the names in a directory. Only the absence of the root is an error. */
async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => !TEMPORARY.test(name)).sort();
  } catch (error) {
    throw new Error(`${shownPath(directory)}: cannot be read (${codeOf(error)})`);
  }
}

function refuse(found: FoundRules, path: string, problem: string): void {
  found.problems.push(`${shownPath(path)}: ${problem}`);
}

function shownPath(path: string): string {
  return printable(path, SHOWN_BYTES);
}

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
