import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../kit/clock.ts';
import { codeOf, messageOf } from '../../kit/errors.ts';
import { isVouchedFor, type Pair, PairError, readBundle, readPair, timeProblem } from './pair.ts';
import { type CertificateSource, createHolder, createProblemReporter, type OnProblem } from './source.ts';

export type CertificateDirectoryOptions = {
  /** The directory with `tls.crt`, `tls.key` and, optionally, `ca.crt` for the webhook configuration's bundle. */
  readonly directory: string;
  readonly clock: Clock;
  readonly onProblem: OnProblem;
};

/** The interval between two looks at the files. */
const LOOK_MS = 2000;
/** How many looks in a row must fail before a problem is reported: one file may change before the other. */
const PATIENCE = 3;

/**
 * Creates a source that reads the certificates of a directory, which cert-manager or an operator writes, again and again. A new pair
 * that is invalid, expired or not valid yet does not replace a good one.
 */
export function createCertificateDirectory(options: CertificateDirectoryOptions): CertificateSource {
  const { directory, clock, onProblem } = options;
  const names = { cert: join(directory, 'tls.crt'), key: join(directory, 'tls.key') };
  const caName = join(directory, 'ca.crt');
  const { set, ...held } = createHolder();
  const report = createProblemReporter(onProblem);
  let served: Pair | undefined;
  /** The last pair that could be read: most looks find it as it was. */
  let last: Pair | undefined;

  /** @throws PairError if the pair cannot be served */
  async function look(): Promise<void> {
    const [cert, key] = [await textOf(names.cert), await textOf(names.key)];
    if (last?.cert !== cert || last.key !== key) last = readPair(cert, key, names);
    const pair = last;
    const [ca, problem] = await readAuthority(pair);
    const untimely = timeProblem(pair, clock.wall());
    if (untimely !== undefined && served !== undefined && timeProblem(served, clock.wall()) === undefined) {
      throw new PairError(`${names.cert} ${untimely}; the previous certificate stays in use`);
    }
    served = pair;
    set({ cert, key, ca, notAfter: pair.notAfter });
    if (problem !== undefined) report(problem, PATIENCE);
    else report(untimely && `${names.cert} ${untimely}; it stays in use until it is replaced`);
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

  return {
    ...held,
    async run(signal) {
      while (!signal.aborted) {
        await look().catch((error: unknown) => report(messageOf(error), served === undefined ? 1 : PATIENCE));
        await clock.delay(LOOK_MS, signal);
      }
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
