/** Starts the work, or returns undefined if it is not wanted any more. */
type Start = () => Promise<unknown> | undefined;

/** The lookups of one namespace at one project. */
type Queue = { readonly project: string; running: number; readonly waiting: Map<string, Start> };

/** The lookups of one namespace at one host. `ready`: the projects that may start one as soon as the host may. */
type Line = { readonly host: string; running: number; readonly queues: Map<string, Queue>; readonly ready: Set<Queue> };

/** `ready`: the hosts that may start a lookup as soon as their namespace may. */
type Space = { running: number; readonly lines: Map<string, Line>; readonly ready: Set<Line> };

/** Where a lookup waits. */
export type Spot = { readonly namespace: string; readonly host: string; readonly project: string };

/**
 * Limits the lookups of one namespace that have started. A lookup that runs or waits for its place takes about 10 kB;
 * the others wait here and take little more than a name, because the pods of one tenant may name hundreds of thousands
 * of images.
 */
export type Starts = {
  /** Starts now, or when other lookups of the namespace have ended. Must not be called for a key that already waits. */
  add(spot: Spot, key: string, start: Start): void;
  has(spot: Spot, key: string): boolean;
  /** The number of waiting keys. */
  readonly size: number;
};

export type StartsOptions = {
  /**
   * The limits for one namespace: in all, at one host, and at one project. Hosts take turns, and at a host its projects
   * do, so that one that hangs delays no other.
   */
  readonly perNamespace: number;
  readonly perHost: number;
  readonly perProject: number;
};

/** For each namespace: enough to keep its turns at registries busy, in about 3 MB. */
export const STARTS: StartsOptions = { perNamespace: 256, perHost: 64, perProject: 16 };

/** Creates the limit; nothing runs yet. */
export function createStarts({ perNamespace, perHost, perProject }: StartsOptions): Starts {
  const spaces = new Map<string, Space>();
  let size = 0;

  function advance(namespace: string, space: Space): void {
    for (const line of space.ready) {
      if (space.running >= perNamespace) return;
      space.ready.delete(line);
      if (line.running >= perHost) continue;
      for (const queue of line.ready) {
        line.ready.delete(queue);
        const [next] = queue.waiting;
        if (next === undefined || queue.running >= perProject) continue;
        const [key, start] = next;
        queue.waiting.delete(key);
        size -= 1;
        // What wants more goes to the end.
        line.ready.add(queue);
        space.ready.add(line);
        run(namespace, space, line, queue, start);
        break;
      }
    }
  }

  function run(namespace: string, space: Space, line: Line, queue: Queue, start: Start): void {
    const running = start();
    if (running === undefined) {
      forget(namespace, space, line, queue);
      return;
    }
    for (const each of [queue, line, space]) each.running += 1;
    const end = (): void => {
      for (const each of [queue, line, space]) each.running -= 1;
      forget(namespace, space, line, queue);
      line.ready.add(queue);
      space.ready.add(line);
      advance(namespace, space);
    };
    running.then(end, end);
  }

  function forget(namespace: string, space: Space, line: Line, queue: Queue): void {
    if (queue.running > 0 || queue.waiting.size > 0) return;
    line.queues.delete(queue.project);
    if (line.queues.size > 0) return;
    space.lines.delete(line.host);
    if (space.lines.size === 0) spaces.delete(namespace);
  }

  return {
    add({ namespace, host, project }, key, start) {
      const space: Space = spaces.get(namespace) ?? { running: 0, lines: new Map(), ready: new Set() };
      spaces.set(namespace, space);
      const line: Line = space.lines.get(host) ?? { host, running: 0, queues: new Map(), ready: new Set() };
      space.lines.set(host, line);
      const queue: Queue = line.queues.get(project) ?? { project, running: 0, waiting: new Map() };
      line.queues.set(project, queue);
      queue.waiting.set(key, start);
      size += 1;
      line.ready.add(queue);
      space.ready.add(line);
      advance(namespace, space);
    },
    has: ({ namespace, host, project }, key) =>
      spaces.get(namespace)?.lines.get(host)?.queues.get(project)?.waiting.has(key) === true,
    get size() {
      return size;
    },
  };
}
