import type { JsonObject } from './json.ts';

/** What happens to requests that match; with `times` to that many of them, else until it is taken back. */
export interface Fault {
  readonly method?: string;
  /** Matched against path and query. */
  readonly path?: RegExp;
  readonly user?: RegExp;
  readonly times?: number;
  /** Answer this instead, with a `Status` body or the one given. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: JsonObject;
  /** End the connection; the work is not done. */
  readonly reset?: boolean;
  /** Neither do the work nor answer; the connection stays open. */
  readonly hang?: boolean;
  /** Do the work, then end the connection without an answer. */
  readonly loseAnswer?: boolean;
  /** Answer as usual, this much later. */
  readonly delayMs?: number;
}

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly user: string;
}

/** The faults that were asked for; requests are held against them in order, the first that matches counts. */
export function createFaults() {
  let active: { fault: Fault; left: number }[] = [];
  let beforePatch: ((asked: Asked) => void | Promise<void>)[] = [];
  const state = { holdTermination: false, goneAsStatus: false };
  return Object.assign(state, {
    /** Returns a function that takes the fault back. */
    inject(fault: Fault): () => void {
      const entry = { fault, left: fault.times ?? Number.POSITIVE_INFINITY };
      active.push(entry);
      return () => {
        active = active.filter((other) => other !== entry);
      };
    },
    clear() {
      active = [];
      beforePatch = [];
      state.holdTermination = false;
      state.goneAsStatus = false;
    },
    /** Another writer gets its turn once, after the client of the next matching patch has read and before it writes. */
    conflictNextPatch(path: RegExp, write: () => unknown): void {
      const once = async (asked: Asked) => {
        if (!path.test(asked.path)) return;
        beforePatch = beforePatch.filter((other) => other !== once);
        await write();
      };
      beforePatch.push(once);
    },
    /** For the server alone. */
    async reached(asked: Asked): Promise<Fault | undefined> {
      if (asked.method === 'PATCH') for (const write of beforePatch) await write(asked);
      const entry = active.find(
        ({ fault, left }) =>
          left > 0 &&
          (fault.method ?? asked.method) === asked.method &&
          (fault.path?.test(asked.path) ?? true) &&
          (fault.user?.test(asked.user) ?? true),
      );
      if (entry) entry.left -= 1;
      return entry?.fault;
    },
  });
}

export type Faults = ReturnType<typeof createFaults>;
