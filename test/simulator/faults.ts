import type { JsonObject } from './json.ts';

/** A fault for matching requests: for `times` of them, else until it is removed. */
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

/** Creates the list of faults. A request is compared with them in order; the first match counts. */
export function createFaults() {
  let active: { fault: Fault; left: number }[] = [];
  let beforePatch: ((asked: Asked) => void | Promise<void>)[] = [];
  return {
    /** Adds a fault. Returns a function that removes it. */
    inject(fault: Fault): () => void {
      const entry = { fault, left: fault.times ?? Number.POSITIVE_INFINITY };
      active.push(entry);
      return () => {
        active = active.filter((other) => other !== entry);
      };
    },
    /** Lets another writer write once, just before the next matching patch. */
    conflictNextPatch(path: RegExp, write: () => unknown): void {
      const once = async (asked: Asked) => {
        if (!path.test(asked.path)) return;
        beforePatch = beforePatch.filter((other) => other !== once);
        await write();
      };
      beforePatch.push(once);
    },
    /** For the server only. */
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
  };
}

export type Faults = ReturnType<typeof createFaults>;
