import { READER_ROLE } from '../../src/names.ts';
import { type Grant, grants, overlays } from './grants.ts';
import { code, codes, join, type Part, table } from './markdown.ts';

/** What `clean` deletes. */
const POLICIES = ['archaware-keep', 'archaware-keep-pods', 'archaware-place', 'archaware-place-daemonsets'];

/** Why each verb is needed, by object and verb; \`read\` is get, list and watch. */
const REASONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  nodes: { read: 'which architectures there are', patch: 'the taint, and labels by rules' },
  namespaces: {
    read: 'which of them are served; their annotations and labels',
    patch: 'the [report](report.md#for-a-team) where one is asked for',
  },
  pods: {
    read: 'which pods are to be placed, and which were placed by archaware',
    patch: 'tolerations; affinity and the removal of the gate',
  },
  'pods/eviction': { create: '`pods.onWrongNode: evict`' },
  'daemonsets.apps': {
    read: 'templates without tolerations get no pods on tainted nodes',
    patch: 'the tolerations in the template, and the annotation that lists them',
  },
  'deployments.apps/archaware-controller': { read: '`clean` refuses to run next to a controller that should run' },
  serviceaccounts: { read: "pull secrets that admission will give to a DaemonSet's pods" },
  secrets: { read: 'pull secrets that pods name', create: 'the certificates, if there are none' },
  'secrets/archaware-controller-webhook': {
    read: 'the certificates that the replicas share',
    update: 'their renewal',
    delete: '`clean`',
  },
  'events.events.k8s.io': {
    create: '[Events](troubleshooting.md#events)',
    read: 'pods that a policy refuses because of what archaware adds (`FailedCreate`)',
  },
  'leases.coordination.k8s.io': {
    create: 'the Lease, if there is none',
    read: '`clean` refuses to run next to a live leader of an installation',
  },
  'leases.coordination.k8s.io/archaware-controller': { read: 'who leads', update: 'to lead' },
  configmaps: { create: 'what the leader knows, for `status`, if nothing is there yet' },
  'configmaps/archaware-controller-status': {
    read: 'for `status` in a pod of archaware',
    patch: 'what the leader knows, for `status`',
    delete: '`clean`',
  },
  ...Object.fromEntries(
    POLICIES.flatMap((name) =>
      ['policies', 'policybindings'].map((kind) => [
        `mutatingadmission${kind}.admissionregistration.k8s.io/${name}`,
        { read: '`clean` looks for it', delete: 'deletes it before it restores DaemonSets' },
      ]),
    ),
  ),
  'knownimages.archaware.dev/known': {
    read: 'what an earlier leader published',
    create: 'what is published, with `placement.publish`',
    patch: 'what is published, with `placement.publish`',
    delete: '`clean`, and when nothing may be published any more',
  },
  'mutatingwebhookconfigurations.admissionregistration.k8s.io/archaware-controller': {
    read: 'by which names the API server calls the webhook',
    patch: 'the leader fills in `caBundle`',
    delete: '`clean` deletes it before it removes gates',
  },
};

const READER = `ClusterRole ${READER_ROLE}`;
const READ: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

/** Every right that the manifests grant, and which overlay has which. */
export function rightsPart(): Part {
  const rows = merged(
    grants().filter(({ role }) => role !== READER),
    ({ part, role }) => [code(part), code(role)],
    (grant) => [grant.verbs.join(', '), why(grant)],
  );
  const parts = overlays().map(({ name, parts: named }) => [code(name), codes(named)]);
  const text = join(
    table(['part', 'role', 'object', 'verbs', 'why'], rows),
    '### Which overlay has which parts',
    table(['overlay', 'parts'], parts),
  );
  return { page: 'rights.md', name: 'rights', text };
}

/** What people may read. */
export function peoplePart(): Part {
  const rows = merged(
    grants().filter(({ role }) => role === READER),
    () => [],
    ({ object, verbs }) => [verbs.join(', '), reasonForPeople(object)],
  );
  return { page: 'rights.md', name: 'people', text: table(['object', 'verbs', 'why'], rows) };
}

type Cells = (grant: Grant) => readonly string[];

/** One row for all objects whose other cells are the same; the objects stand between these. */
function merged(all: readonly Grant[], before: Cells, after: Cells): string[][] {
  const rows = new Map<string, { readonly first: Grant; readonly objects: string[] }>();
  for (const grant of all) {
    const key = [...before(grant), ...after(grant)].join();
    const row = rows.get(key) ?? { first: grant, objects: [] };
    row.objects.push(grant.object);
    rows.set(key, row);
  }
  return [...rows.values()].map(({ first, objects }) => [...before(first), codes(objects), ...after(first)]);
}

/** Why a person needs a right, by object. */
const FOR_PEOPLE: Readonly<Record<string, string>> = {
  nodes: 'architectures, taints, labels',
  namespaces: 'their labels and annotations',
  pods: 'what is to be explained',
  serviceaccounts: 'the names of pull secrets',
  'events.events.k8s.io': 'what the controller says about an object',
  'configmaps/archaware-controller': 'its configuration',
  'configmaps/archaware-controller-status': 'what its leader knows',
  'leases.coordination.k8s.io': 'who leads',
  'knownimages.archaware.dev/known': 'which images are published (`placement.publish`)',
  'nodepools.karpenter.sh': 'hints about pools',
};

function reasonForPeople(object: string): string {
  return FOR_PEOPLE[object] ?? 'workloads';
}

function why({ part, object, verbs }: Grant): string {
  const wanted = new Set(verbs.map((verb) => (READ.has(verb) ? 'read' : verb)));
  const reasons = [...wanted].map((verb) => {
    const reason = REASONS[object]?.[verb];
    if (reason === undefined) {
      throw new Error(`${part} grants ${verb} on ${object}, for which hack/reference/rbac.ts has no reason`);
    }
    return reason;
  });
  return [...new Set(reasons)].join('; ');
}
