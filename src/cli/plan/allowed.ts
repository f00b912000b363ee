import type { Context } from '../../app/context.ts';
import type { Loops } from '../../controllers/loops/loops.ts';
import { decidedOf } from '../../controllers/object-record.ts';
import type { Watches } from '../../controllers/watches.ts';
import type { ApiClient } from '../../kube/client.ts';
import { onlyObserves } from '../../placement/placing.ts';
import { few } from '../../placement/reasons.ts';
import type { Settings } from '../../placement/settings.ts';
import { type AskedNamespace, ask } from './ask.ts';
import type { Plan } from './shape.ts';

/** Asks the API server whether it would let in what `run` would write, and notes what could not be asked. */
export async function askWhetherAllowed({
  context: { config, signal, note },
  client,
  settings,
  watches,
  loops,
  changes,
}: {
  readonly context: Context;
  readonly client: ApiClient;
  readonly settings: Settings;
  readonly watches: Watches;
  readonly loops: Loops;
  readonly changes: Plan['changes'];
}): Promise<Plan['refused']> {
  if (onlyObserves(settings)) return [];
  const cluster = watches.witnesses.architectures();
  const all = namespacesToAsk(loops, changes, cluster);
  const { refused, notAsked } = await ask(client, all.slice(0, MOST_ASKED), settings, config.webhook.enabled, signal);
  for (const [why, names] of notAsked) {
    note(`${names.length} namespace(s) could not be asked whether such pods may be created: ${why} (${few(names)})`);
  }
  if (all.length > MOST_ASKED) {
    note(
      `${MOST_ASKED} of ${all.length} namespaces were asked whether such pods may be created: -n NAMESPACE asks another one`,
    );
  }
  return refused;
}

/** Each namespace costs one to four requests. */
const MOST_ASKED = 500;

/** Returns the namespaces in which `run` would place something, sorted by name. */
function namespacesToAsk(loops: Loops, changes: Plan['changes'], cluster: readonly string[]): AskedNamespace[] {
  const found = new Map<string, { architectures: Set<string>; daemonSets: AskedNamespace['daemonSets'][number][] }>();
  const of = (namespace: string) => {
    const entry = found.get(namespace) ?? { architectures: new Set<string>(), daemonSets: [] };
    found.set(namespace, entry);
    return entry;
  };
  for (const states of [loops.podStates, loops.daemonSetStates]) {
    for (const [key, { decision }] of decidedOf(states)) {
      if (decision.kind === 'skip') continue;
      const { architectures } = of(key.split('/')[0] ?? '');
      if (decision.kind === 'place') for (const each of decision.architectures) architectures.add(each);
    }
  }
  for (const { kind, namespace, name, patch } of changes) {
    if (kind === 'DaemonSet' && namespace !== undefined) of(namespace).daemonSets.push({ name, patch });
  }
  const asked = [...found].map(([name, { architectures, daemonSets }]) => {
    const those = [...architectures].filter((each) => cluster.includes(each)).sort();
    return { name, architectures: those.length > 0 ? those : cluster, daemonSets };
  });
  return asked.sort((one, other) => (one.name < other.name ? -1 : 1));
}
