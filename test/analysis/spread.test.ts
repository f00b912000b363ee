import { expect } from 'chai';
import { checkObjects } from '../../src/analysis/readiness/check-objects.ts';
import { createInventory } from '../../src/analysis/readiness/inventory.ts';
import { spreadNote, taintedArchitectures } from '../../src/analysis/spread.ts';
import { overviewOf, type WorkloadSubject } from '../../src/analysis/workloads/overview.ts';
import { readHardSpread } from '../../src/analysis/workloads/workload.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import type { Decision, Placement } from '../../src/placement/decide.ts';
import type { Settings } from '../../src/placement/settings.ts';
import { node, place, settings, taint, template } from '../placement/objects.ts';
import { spread } from '../support/workloads.ts';
import { explained, node as nodeObject } from './explain/explained.ts';
import { answer, object } from './readiness/world.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const SAYS = (over: string, nodes = 'arm64') =>
  `its topology spread over ${over} (DoNotSchedule) counts ${nodes} nodes, although their taint keeps it off, so some of its pods may ` +
  'stay Pending: set nodeTaintsPolicy: Honor in that constraint (docs/workloads.md)';
const placed = (more: Partial<Placement> = {}): Decision => place(['amd64'], more);

describe('a hard topology spread beside nodes with a taint', () => {
  type Given = {
    readonly constraints?: readonly JsonObject[];
    readonly spec?: JsonObject;
    readonly decision?: Decision | { readonly kind: 'skip' };
    readonly settings?: Partial<Settings>;
    readonly tainted?: readonly string[];
  };
  const note = ({ constraints = [spread(HOSTNAME)], spec = {}, decision = placed(), ...given }: Given = {}) =>
    spreadNote(
      readHardSpread({ topologySpreadConstraints: constraints }),
      template(['a'], spec),
      decision,
      settings(given.settings),
      given.tainted ?? ['amd64', 'arm64'],
    );
  const onAmd64 = { nodeSelector: { 'kubernetes.io/arch': 'amd64' } };
  const ignoring = [spread(HOSTNAME, { nodeAffinityPolicy: 'Ignore' })];
  const tolerating = (more: JsonObject) => ({ tolerations: [{ key: 'supported-arch', ...more }] });
  const { taints } = settings();

  const named: readonly (readonly [title: string, given: Given, expected: string])[] = [
    ['of images that lack a tainted architecture', {}, SAYS(HOSTNAME)],
    ['that lack several', { tainted: ['amd64', 'arm64', 's390x'] }, SAYS(HOSTNAME, 'arm64, s390x')],
    ['with two such constraints', { constraints: [spread('zone'), spread('host')] }, SAYS('zone, host')],
    ['with nodeTaintsPolicy: Ignore', { constraints: [spread('zone', { nodeTaintsPolicy: 'Ignore' })] }, SAYS('zone')],
    ['that ignores affinity, in the mode both', { constraints: ignoring, settings: { mode: 'both' } }, SAYS(HOSTNAME)],
    ['that ignores the node selector of its pod', { constraints: ignoring, spec: onAmd64 }, SAYS(HOSTNAME)],
    ['whose pod tolerates another value', { spec: tolerating({ value: 'amd64' }) }, SAYS(HOSTNAME)],
    ['with taints of the provider', { settings: { taints: { ...taints, manage: false } } }, SAYS(HOSTNAME)],
  ];
  for (const [title, given, expected] of named)
    it(`is named: a constraint ${title}`, () => expect(note(given)).to.equal(expected));

  const silent: readonly (readonly [title: string, given: Given])[] = [
    ['nodeTaintsPolicy: Honor', { constraints: [spread(HOSTNAME, { nodeTaintsPolicy: 'Honor' })] }],
    ['ScheduleAnyway', { constraints: [spread(HOSTNAME, { whenUnsatisfiable: 'ScheduleAnyway' })] }],
    ['no constraint', { constraints: [] }],
    ['images for all tainted architectures', { decision: placed({ architectures: ['amd64', 'arm64'] }) }],
    ['no taint elsewhere', { tainted: ['amd64'] }],
    ['the mode both', { settings: { mode: 'both' } }],
    ['the mode affinity', { constraints: ignoring, settings: { mode: 'affinity' } }],
    ['the mode observe', { settings: { mode: 'observe' } }],
    ['taints that only discourage', { settings: { taints: { ...taints, effect: 'PreferNoSchedule' } } }],
    ['a node selector for what its images run on', { spec: onAmd64 }],
    ['a toleration of the taint', { spec: tolerating({ operator: 'Exists' }) }],
    ['a pod that follows the cluster', { decision: placed({ followsCluster: true }) }],
    ['an image that is not known', { decision: placed({ unknown: ['a'] }) }],
    ['images with nothing in common', { decision: { kind: 'hold', reason: 'no-common-architecture', images: [] } }],
    ['a pod that archaware leaves alone', { decision: { kind: 'skip' } }],
  ];
  for (const [title, given] of silent) it(`is not named with ${title}`, () => expect(note(given)).to.equal(undefined));

  it('knows which architectures are tainted, or will be', () => {
    const nodes = [
      node({ architecture: 'amd64', uid: 'a', labels: { pool: 'x' } }),
      node({ architecture: 'arm64', uid: 'b', taints: [taint('supported-arch=arm64:NoSchedule')] }),
      node({ architecture: 's390x', uid: 'c', taints: [taint('gpu=yes:NoSchedule')] }),
    ];
    const of = (more: Partial<Settings>) => taintedArchitectures(nodes, settings(more));
    const only = [{ key: 'pool', operator: 'in', values: ['x'] }] as const;
    expect(of({})).to.deep.equal(['amd64', 'arm64', 's390x']);
    expect(of({ taints: { ...taints, nodeSelector: only } })).to.deep.equal(['amd64', 'arm64']);
    expect(of({ taints: { ...taints, manage: false } })).to.deep.equal(['arm64']);
  });

  const pod = { topologySpreadConstraints: [spread(HOSTNAME)] };

  it('is a step that explain advises, not for a DaemonSet', () => {
    // No node has a host name: nodes are not counted.
    const nodes = ['amd64', 'arm64'].map((name) => nodeObject(name, name, {}, { 'kubernetes.io/arch': name }));
    const advice = (kind: 'Deployment' | 'DaemonSet') =>
      explained({ kind, isTemplate: true, images: { a: 'linux/amd64' }, nodes, spec: pod }).advice;
    expect(advice('Deployment')).to.deep.equal([SAYS(HOSTNAME)]);
    expect(advice('DaemonSet').join()).not.to.include('topology');
  });

  it('is a note of check, for the architectures that it checks for', () => {
    const notesOn = (on: readonly string[]) => {
      const inventory = createInventory();
      inventory.add(object({ images: ['web-amd64'], pod }));
      const circumstances = {
        settings: settings(),
        architectures: on,
        namespaceOf: (name: string) => ({ name, labels: {}, preferred: undefined }),
        namesOf: (image: string) => [image],
        assessesAll: true,
      };
      return checkObjects(inventory.units(), on, circumstances, ({ image }) => answer(image)).notes;
    };
    const named = { kind: 'Deployment', namespace: 'shop', name: 'web', text: SAYS(HOSTNAME) };
    expect(notesOn(['amd64', 'arm64'])).to.deep.equal([named]);
    expect(notesOn(['amd64'])).to.equal(undefined);
  });

  it('is a fact of the workload in plan, by any of its pods, and counts as nothing', () => {
    const subject = (spread?: string): WorkloadSubject => ({
      workload: { kind: 'Deployment', namespace: 'shop', name: 'web' },
      ...{ decision: placed(), settings: settings(), tolerations: [], bound: true, asked: undefined },
      ...{ nodeArchitecture: 'amd64', spread },
    });
    const around = { architectures: ['amd64', 'arm64'], allTainted: true };
    const judged = overviewOf([subject(), subject('its topology spread …'), subject()], around);
    expect(judged).to.have.lengthOf(1);
    expect(judged[0]).to.deep.include({ pendingAtRestart: false, why: '', spread: 'its topology spread …' });
    expect(overviewOf([subject()], around)[0]).not.to.have.property('spread');
  });
});
