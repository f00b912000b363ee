/** Starts the work, or returns undefined if it is not wanted any more. */
type Start = () => Promise<unknown> | undefined;

/** The lookups of one namespace at one host. */
type Line = { readonly host: string; running: number; readonly waiting: Map<string, Start> };

/** `ready`: the lines that may start a lookup as soon as their namespace may. */
type Space = { running: number; readonly lines: Map<string, Line>; readonly ready: Set<Line> };

/**
 * Limits the lookups of one namespace that have started. A lookup that runs or waits for its place takes about 10 kB;
 * the others wait here and take little more than a name, because the pods of one tenant may name hundreds of thousands
 * of images.
 */
export type Starts = {
  /** Starts now, or when other lookups of the namespace have ended. Must not be called for a key that already waits. */
  add(namespace: string, host: string, key: string, start: Start): void;
  has(namespace: string, host: string, key: string): boolean;
  /** The number of waiting keys. */
  readonly size: number;
};

export type StartsOptions = {
  /**
   * The limits for one namespace: in all, and at one host. Hosts take turns, so that a host that hangs delays no other.
   */
  readonly perNamespace: number;
  readonly perHost: number;
};

/** For each namespace: enough to keep its turns at registries busy, in about 3 MB. */
export const STARTS: StartsOptions = { perNamespace: 256, perHost: 64 };

/** Creates the limit; nothing runs yet. */
export function createStarts({ perNamespace, perHost }: StartsOptions): Starts {
  const spaces = new Map<string, Space>();
  let size = 0;

  function advance(namespace: string, space: Space): void {
    for (const line of space.ready) {
      if (space.running >= perNamespace) return;
      space.ready.delete(line);
      const [next] = line.waiting;
      if (next === undefined || line.running >= perHost) continue;
      const [key, start] = next;
      line.waiting.delete(key);
      size -= 1;
      // A line that wants more goes to the end.
      space.ready.add(line);
      const run = start();
      if (run === undefined) {
        forget(namespace, space, line);
        continue;
      }
      line.running += 1;
      space.running += 1;
      const end = (): void => {
        line.running -= 1;
        space.running -= 1;
        forget(namespace, space, line);
        space.ready.add(line);
        advance(namespace, space);
      };
      run.then(end, end);
    }
  }

  function forget(namespace: string, space: Space, line: Line): void {
    if (line.running > 0 || line.waiting.size > 0) return;
    space.lines.delete(line.host);
    if (space.lines.size === 0) spaces.delete(namespace);
  }

  return {
    add(namespace, host, key, start) {
      const space = spaces.get(namespace) ?? { running: 0, lines: new Map<string, Line>(), ready: new Set<Line>() };
      spaces.set(namespace, space);
      const line = space.lines.get(host) ?? { host, running: 0, waiting: new Map<string, Start>() };
      space.lines.set(host, line);
      line.waiting.set(key, start);
      size += 1;
      space.ready.add(line);
      advance(namespace, space);
    },
    has: (namespace, host, key) => spaces.get(namespace)?.lines.get(host)?.waiting.has(key) === true,
    get size() {
      return size;
    },
  };
}
