import { type Conversion, createDraft, type Draft } from './conversion.ts';
import { type Flags, items, readFlags, readNoeSettings } from './noe-arguments.ts';
import { carryRegistries } from './noe-registries.ts';
import { flagsOfValues } from './noe-values.ts';

/** The weight of the preferred architecture: the highest that Kubernetes allows. */
const PREFERRED = 100;
const TRUE = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

/**
 * Converts Noe's settings: its command line, a manifest whose container has it, or the values of its Helm chart.
 *
 * @throws ConfigurationError naming the file, and each flag or key with its value and what is allowed
 */
export function convertNoe(file: string, text: string): Conversion {
  const settings = readNoeSettings(file, text);
  const draft = createDraft(file);
  draft.set('placement.mode', 'affinity');
  draft.set('webhook.enabled', true);
  const flags = settings.kind === 'values' ? flagsOfValues(settings.values, draft) : readFlags(settings.words, draft);
  carryArchitectures(flags, draft);
  carryMatchedLabels(flags, draft);
  carryRegistries(flags, draft);
  carryAddresses(flags, draft);
  carryLeaderElection(flags, draft);
  draft.set('placement.noCommonArchitecture', 'reject');
  draft.set('pods.onWrongNode', 'evict');
  draft.note(
    'pods on nodes of a wrong architecture',
    undefined,
    'Noe deletes those that are not ready; archaware evicts them, within PodDisruptionBudgets, if a controller creates them again',
  );
  noteFiles(settings.kind, draft);
  return draft.finish();
}

function carryArchitectures(flags: Flags, draft: Draft): void {
  const [schedulableFlag, preferredFlag] = ['cluster-schedulable-archs', 'preferred-arch'];
  const listed = items(flags.get(schedulableFlag));
  const schedulable = listed.flatMap((name) => draft.architecture(`--${schedulableFlag}`, name) ?? []);
  if (schedulable.length > 0) draft.set('architectures.schedulable', [...new Set(schedulable)]);

  // By default, Noe prefers amd64.
  const given = flags.get(preferredFlag);
  if (given === '') return;
  const preferred = draft.architecture(`--${preferredFlag}`, given ?? 'amd64');
  if (preferred === undefined) return;
  const shownAs = given ?? 'amd64, its default';
  if (schedulable.length > 0 && !schedulable.includes(preferred)) {
    const why = `not one of --${schedulableFlag}; Noe does not start with it; left out`;
    draft.note(`--${preferredFlag}`, shownAs, why);
    return;
  }
  draft.set('architectures.preferred', { [preferred]: PREFERRED });
  draft.note(
    `--${preferredFlag}`,
    shownAs,
    'a preference here, of weight 100, where Noe makes it a node selector: without room there, pods go to the others',
  );
}

function carryMatchedLabels(flags: Flags, draft: Draft): void {
  const keys = items(flags.get('match-node-labels'));
  if (keys.length > 0) draft.carry('pods.matchNodeLabels', keys, '--match-node-labels', flags.get('match-node-labels'));
  const os = flags.get('system-os') ?? 'linux';
  if (os !== 'linux')
    draft.note('--system-os', os, 'archaware reads the OS of each pod: spec.os.name, else its selector, else linux');
}

function carryAddresses(flags: Flags, draft: Draft): void {
  const metrics = flags.get('metrics-addr');
  // "0" switches metrics off in Noe; the empty address does the same in archaware.
  if (metrics !== undefined) draft.carry('metrics.address', metrics === '0' ? '' : metrics, '--metrics-addr', metrics);
  const probes = flags.get('health-probe-addr');
  if (probes !== undefined) draft.note('--health-probe-addr', probes, '/healthz and /readyz are at metrics.address');
  const certificates = flags.get('cert-dir');
  if (certificates !== undefined) {
    const why =
      'that certificate is for the name of its Service; archaware creates its own (webhook.certificates: self)';
    draft.note('--cert-dir', certificates, why);
  }
  const kubeconfig = flags.get('kubeconfig');
  if (kubeconfig !== undefined) draft.note('--kubeconfig', kubeconfig, 'a flag here too, not a configuration key');
}

function carryLeaderElection(flags: Flags, draft: Draft): void {
  const text = flags.get('leader-elect');
  if (text === undefined) return;
  if (TRUE.includes(text)) draft.set('leaderElection.enabled', true);
  else if (FALSE.includes(text))
    draft.note('--leader-elect', text, 'stays on here, because two replicas without it would work against each other');
  else draft.refuse('--leader-elect', text, 'true or false');
}

/** Notes the files that Noe finds by itself. */
function noteFiles(kind: 'arguments' | 'values', draft: Draft): void {
  if (kind === 'values') return;
  draft.note(
    'files that Noe looks for by itself',
    undefined,
    '/var/lib/kubelet/config.json, .docker/config.json and .dockercfg of its home, /etc/containerd; mount what you need, and name it ' +
      'in credentials.dockerConfigFiles and registries.containerdConfigDirectory',
  );
}
