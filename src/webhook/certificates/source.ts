import { isDeepStrictEqual } from 'node:util';

/** The certificate that the webhook serves with, from any source. */
export type ServingCertificate = {
  /** PEM: the serving certificate, then the intermediate ones. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** PEM bundle of the authorities that clients should trust; undefined if the source does not know them. */
  readonly ca: string | undefined;
  /** The end of the serving certificate's validity; milliseconds since the epoch. */
  readonly notAfter: number;
  /** The path of the reviews; undefined if certificates come from a directory, and until the Secret has it. */
  readonly path?: string | undefined;
};

/** A source of serving certificates. */
export type CertificateSource = {
  /** Returns the pair to serve with; undefined until the first good one is there. */
  current(): ServingCertificate | undefined;
  /** Calls the listener with each new good pair, including the first. */
  onChange(listener: (certificate: ServingCertificate) => void): void;
  /** Looks for new pairs until the signal aborts. Never throws. */
  run(signal: AbortSignal): Promise<void>;
};

/** Called once with a problem, and with undefined when it is over. */
export type OnProblem = (problem: string | undefined) => void;

/** Creates the holder of the pair in use. It calls its listeners for each new pair. */
export function createHolder() {
  const listeners: ((certificate: ServingCertificate) => void)[] = [];
  let current: ServingCertificate | undefined;
  return {
    current: (): ServingCertificate | undefined => current,
    onChange: (listener: (certificate: ServingCertificate) => void): void => void listeners.push(listener),
    set(next: ServingCertificate): void {
      if (isDeepStrictEqual(current, next)) return;
      current = next;
      for (const listener of listeners) listener(next);
    },
  };
}

/** Creates a function that reports each problem once: after it was found `patience` times in a row. */
export function createProblemReporter(onProblem: OnProblem): (problem: string | undefined, patience?: number) => void {
  let reported: string | undefined;
  let found = 0;
  return (problem, patience = 1) => {
    found = problem === undefined ? 0 : found + 1;
    if (problem === reported || (problem !== undefined && found < patience)) return;
    reported = problem;
    onProblem(problem);
  };
}
