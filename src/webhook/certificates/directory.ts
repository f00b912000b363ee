import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { codeOf, messageOf } from '../../kit/errors.ts';
import { watchFiles } from '../../kit/watch-files.ts';
import { isVouchedFor, type Pair, PairError, readBundle, readPair, timeProblem } from './pair.ts';
import { type CertificateSource, createHolder, createProblemReporter, type OnProblem } from './source.ts';

export type CertificateDirectoryOptions = {
  /** The directory with `tls.crt`, `tls.key` and, optionally, `ca.crt` for the webhook configuration's bundle. */
  readonly directory: string;
  readonly clock: Clock;
  readonly onProblem: OnProblem;
  /** Milliseconds between two checks of the files; default 2000. */
  readonly intervalMs?: number;
};

/** The interval for checks of the time, and of files with a problem. */
const AGAIN_MS = 2000;
/** How many reads in a row must fail before a problem is reported: one file may change before the other. */
const PATIENCE = 3;

/**
 * Creates a source that reads the certificates of a directory, which cert-manager or an operator writes, whenever they change. A
 * new pair that is invalid, expired or not valid yet does not replace a good one.
 */
export function createCertificateDirectory(options: CertificateDirectoryOptions): CertificateSource {
  const { directory, clock, onProblem, intervalMs } = options;
  const names = { cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  const caName = join(directory, 'ca.crt');
  const { set, ...held } = createHolder();
  const report = createProblemReporter(onProblem);
  let served: Pair | undefined;
  /** The problem that the last read found. */
  let wrong: string | undefined;

  async function look(): Promise<void> {
    let found: string | undefined;
    try {
      const pair = readPair(await textOf(names.cert), await textOf(names.key), names);
      const [ca, problem] = await readAuthority(pair);
      const untimely = timeProblem(pair, clock.wall());
      if (untimely !== undefined && served !== undefined && timeProblem(served, clock.wall()) === undefined) {
        throw new PairError(`${names.cert} ${untimely}; the previous certificate stays in use`);
      }
      found = problem;
      served = pair;
      set({ cert: pair.cert, key: pair.key, ca, notAfter: pair.notAfter });
    } catch (error) {
      found = messageOf(error);
    }
    // Set at the end: until this read is over, the result of the last one is valid.
    wrong = found;
    judge();
  }

  /** Reads the bundle for clients, or its problem. A pair can be served without a bundle. */
  async function readAuthority(pair: Pair): Promise<[ca: string | undefined, problem?: string]> {
    try {
      const text = await textOf(caName, '');
      if (text.trim() === '') return [undefined];
      const isGood = isVouchedFor(pair, readBundle(text, caName));
      return isGood ? [text] : [undefined, `${caName} does not verify ${names.cert}`];
    } catch (error) {
      return [undefined, messageOf(error)];
    }
  }

  function judge(): void {
    const untimely = served === undefined ? undefined : timeProblem(served, clock.wall());
    if (wrong !== undefined) report(wrong, served === undefined ? 1 : PATIENCE);
    else report(untimely === undefined ? undefined : `${names.cert} ${untimely}; it stays in use until it is replaced`);
  }

  return {
    ...held,
    async run(signal) {
      let looking = look();
      const inTurn = () => {
        looking = looking.then(look);
        return looking;
      };
      const paths = () => [names.cert, names.key, caName];
      await watchFiles(paths, inTurn, { clock, signal, ...(intervalMs === undefined ? {} : { intervalMs }) });
      while (!signal.aborted) {
        await clock.delay(AGAIN_MS, signal);
        if (signal.aborted) break;
        if (wrong === undefined) judge();
        else await inTurn();
      }
      await looking;
    },
  };
}

/** @throws PairError if the file cannot be read, or does not exist and there is no `fallback` */
async function textOf(file: string, fallback?: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const isMissing = codeOf(error) === 'ENOENT';
    if (isMissing && fallback !== undefined) return fallback;
    throw new PairError(`${file} cannot be read: ${isMissing ? 'it does not exist' : codeOf(error)}`);
  }
}
