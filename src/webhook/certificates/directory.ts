import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { messageOf } from '../../kit/errors.ts';
import { watchFiles } from '../../kit/watch-files.ts';
import { isVouchedFor, type Pair, PairError, readBundle, readPair, timeProblem } from './pair.ts';
import { type CertificateSource, createHolder, createProblemReporter, type OnProblem } from './source.ts';

export type CertificateDirectoryOptions = {
  /** Holds `tls.crt`, `tls.key` and, where clients are to be told whom to trust, `ca.crt`. */
  readonly directory: string;
  readonly clock: Clock;
  readonly onProblem: OnProblem;
  /** Milliseconds between two looks at the files; 2000 unless told. */
  readonly intervalMs?: number;
};

/** Between two looks at the clock, and at files that were found wrong. */
const AGAIN_MS = 2000;
/** Looks in a row that find the files wrong before that is a problem: one file may change before the other. */
const PATIENCE = 3;

/**
 * The certificates of a directory, as cert-manager or an operator puts them there, read again whenever they change. A
 * new pair that cannot be used, or not at this time, does not replace one that can.
 */
export function createCertificateDirectory(options: CertificateDirectoryOptions): CertificateSource {
  const { directory, clock, onProblem, intervalMs } = options;
  const names = { cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  const caName = join(directory, 'ca.crt');
  const { set, ...held } = createHolder();
  const tell = createProblemReporter(onProblem);
  let served: Pair | undefined;
  /** What is wrong with the files, as of the last look at them. */
  let wrong: string | undefined;

  async function look(): Promise<void> {
    let found: string | undefined;
    try {
      const pair = readPair(await textOf(names.cert), await textOf(names.key), names);
      const [ca, problem] = await readAuthority(pair);
      const untimely = timeProblem(pair, clock.wall());
      if (untimely !== undefined && served !== undefined && timeProblem(served, clock.wall()) === undefined) {
        throw new PairError(`${names.cert} ${untimely}; the pair from before is served`);
      }
      found = problem;
      served = pair;
      set({ cert: pair.cert, key: pair.key, ca, notAfter: pair.notAfter });
    } catch (error) {
      found = messageOf(error);
    }
    // Only now: until the look is over, what the last one found holds.
    wrong = found;
    judge();
  }

  /** The bundle for clients, and what is wrong with it: a pair can be served without one. */
  async function readAuthority(pair: Pair): Promise<[ca: string | undefined, problem?: string]> {
    try {
      const text = await textOf(caName, '');
      if (text.trim() === '') return [undefined];
      const isGood = isVouchedFor(pair, readBundle(text, caName));
      return isGood ? [text] : [undefined, `${caName} does not vouch for ${names.cert}`];
    } catch (error) {
      return [undefined, messageOf(error)];
    }
  }

  function judge(): void {
    const untimely = served === undefined ? undefined : timeProblem(served, clock.wall());
    if (wrong !== undefined) tell(wrong, served === undefined ? 1 : PATIENCE);
    else
      tell(untimely === undefined ? undefined : `${names.cert} ${untimely}; it is served until there is a better one`);
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
      await watchFiles(paths, inTurn, { signal, ...(intervalMs === undefined ? {} : { intervalMs }) });
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

/** @throws PairError where the file cannot be read, or, without a `fallback`, is not there */
async function textOf(file: string, fallback?: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    if (code === 'ENOENT' && fallback !== undefined) return fallback;
    throw new PairError(`${file} cannot be read: ${code === 'ENOENT' ? 'it does not exist' : code}`);
  }
}
