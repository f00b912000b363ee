import { isDeepStrictEqual } from 'node:util';
import type { Shared } from './secrets.ts';

/** What the webhook serves with, wherever it comes from. */
export type ServingCertificate = {
  /** PEM: the serving certificate, then those between it and the authority. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** PEM bundle of the authorities that clients should trust; undefined where the source does not know. */
  readonly ca: string | undefined;
  /** Milliseconds since the epoch, of the serving certificate. */
  readonly notAfter: number;
  /** What else the replicas share; undefined where certificates come from a directory, and until the Secret has it. */
  readonly shared?: Shared | undefined;
};

/** Where serving certificates come from. */
export type CertificateSource = {
  /** The pair to serve with; undefined until the first good one is there. */
  current(): ServingCertificate | undefined;
  /** Called with each new good pair, the first included. */
  onChange(listener: (certificate: ServingCertificate) => void): void;
  /** Looks for new pairs. Never throws; resolves when it has ended, with the signal. */
  run(signal: AbortSignal): Promise<void>;
};

/** Told what is wrong, once, and undefined once nothing is any more. */
export type OnProblem = (problem: string | undefined) => void;

/** The pair in use, and who is told when there is another. */
export function createHolder(): Pick<CertificateSource, 'current' | 'onChange'> & {
  set(certificate: ServingCertificate): void;
} {
  const listeners: ((certificate: ServingCertificate) => void)[] = [];
  let current: ServingCertificate | undefined;
  return {
    current: () => current,
    onChange: (listener) => void listeners.push(listener),
    set(next) {
      if (isDeepStrictEqual(current, next)) return;
      current = next;
      for (const listener of listeners) listener(next);
    },
  };
}

/** Tells of each problem once: when it was found `patience` times in a row. */
export function createProblemReporter(onProblem: OnProblem): (problem: string | undefined, patience?: number) => void {
  let told: string | undefined;
  let found = 0;
  return (problem, patience = 1) => {
    found = problem === undefined ? 0 : found + 1;
    if (problem === told || (problem !== undefined && found < patience)) return;
    told = problem;
    onProblem(problem);
  };
}
