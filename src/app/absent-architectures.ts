import { absentArchitectures, absentNote } from '../config/absent.ts';
import type { Config } from '../config/schema.ts';
import type { Logger } from '../observability/log.ts';
import { type Node, reportedBy } from '../placement/nodes/node.ts';

/** Returns a line for each configuration key that names an architecture that no node has. */
export function absentNotes(config: Config, nodes: Iterable<Node>): string[] {
  const cluster = reportedBy(nodes);
  return absentArchitectures(config, cluster).map((absent) => absentNote(absent, cluster));
}

/** Creates a function that logs these lines once for each configuration. They are not errors: a pool may have no node now. */
export function absentArchitectureLog(log: Pick<Logger, 'warn'>): (config: Config, nodes: Iterable<Node>) => void {
  let last = '';
  return (config, nodes) => {
    const cluster = reportedBy(nodes);
    const absent = absentArchitectures(config, cluster);
    const id = JSON.stringify(absent);
    if (id !== last) {
      for (const { key, architectures } of absent) {
        log.warn({ key, architectures, nodes: cluster }, 'the configuration names architectures that no node has');
      }
    }
    last = id;
  };
}
