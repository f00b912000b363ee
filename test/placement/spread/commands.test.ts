import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { Placement } from '../../../src/placement/decide.ts';
import { type Demands, readDemands } from '../../../src/placement/fit.ts';
import type { Node } from '../../../src/placement/nodes/node.ts';
import { checkObjects } from '../../../src/placement/readiness/check-objects.ts';
import { createInventory } from '../../../src/placement/readiness/inventory.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { readHardSpread } from '../../../src/placement/spread/constraint.ts';
import { createSpreadLimits, type OtherPod } from '../../../src/placement/spread/limit.ts';
import { lastingNodes } from '../../../src/placement/spread/nodes.ts';
import { spreadPod } from '../../../src/placement/spread/pod.ts';
import { type JudgedWorkload, overviewOf, type Subject } from '../../../src/placement/workloads/overview.ts';
import { explained, node as nodeObject } from '../explain/explained.ts';
import { settings, template } from '../objects.ts';
import { answer, node, object, report, verdict, type World } from '../readiness/world.ts';
import { spread } from './constellations.ts';

const architectureOf = (name: string) => name.split('-')[0] ?? '';
const HOSTNAME = 'kubernetes.io/hostname';
const EMPTY =
  'its topology spread over kubernetes.io/hostname (DoNotSchedule) counts arm64-1, where the taint supported-arch=arm64:NoSchedule keeps it off';
const CURES = 'set nodeTaintsPolicy: Honor in that constraint, or use placement.mode both (docs/workloads.md)';
const SCHEDULER =
  "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match pod topology spread constraints.";

const web = (replicas: number, constraints: readonly JsonObject[] = [spread(HOSTNAME)], spec: JsonObject = {}) =>
  object({
    images: ['web-amd64'],
    labels: { app: 'web' },
    pod: { topologySpreadConstraints: constraints },
    spec: { replicas, ...spec },
  });

describe('a topology spread constraint that counts nodes with a taint', () => {
  describe('in explain', () => {
    const CLUSTER = ['amd64-1', 'amd64-2', 'arm64-1'].map((name) =>
      nodeObject(
        name,
        architectureOf(name),
        {},
        { [HOSTNAME]: name, zone: name, 'kubernetes.io/arch': architectureOf(name) },
      ),
    );
    const pending = (message: string, spec: JsonObject = {}, mode: Settings['mode'] = 'taints') =>
      explained({
        images: { a: 'linux/amd64' },
        nodes: CLUSTER,
        metadata: { labels: { app: 'web' } },
        spec: {
          topologySpreadConstraints: [spread(HOSTNAME)],
          tolerations: [{ key: 'supported-arch', operator: 'Equal', value: 'amd64', effect: 'NoSchedule' }],
          ...spec,
        },
        status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message }] },
        settings: { mode },
      });

    it('is what a pod that waits has to do next, and a field for programs', () => {
      const { advice, spread: found } = pending(SCHEDULER);
      const text = `${EMPTY}: at most 2 such pods can run`;
      expect(advice).to.deep.equal([`${text}; ${CURES}`]);
      expect(found).to.deep.equal({ topologyKey: HOSTNAME, empty: ['arm64-1'], most: 2, text });
    });

    const silent: readonly (readonly [title: string, found: () => ReturnType<typeof pending>])[] = [
      ['the scheduler names another cause', () => pending('0/3 nodes are available: 3 Insufficient cpu.')],
      [
        'the constraint honours taints',
        () => pending(SCHEDULER, { topologySpreadConstraints: [spread(HOSTNAME, { nodeTaintsPolicy: 'Honor' })] }),
      ],
      ['the pod selects its architecture', () => pending(SCHEDULER, { nodeSelector: { [HOSTNAME]: 'amd64-1' } })],
    ];
    for (const [title, found] of silent) {
      it(`is not mentioned where ${title}`, () => expect(found()).not.to.have.property('spread'));
    }

    const deployed = (replicas: number, more: JsonObject = {}, mode: Settings['mode'] = 'taints') =>
      explained({
        kind: 'Deployment',
        images: { a: 'linux/amd64' },
        isTemplate: true,
        nodes: CLUSTER,
        replicas,
        metadata: { labels: { app: 'web' } },
        spec: { topologySpreadConstraints: [spread('zone', more)] },
        settings: { mode },
      }).advice;
    const ZONES =
      'its topology spread over zone (DoNotSchedule) counts arm64-1, where the taint supported-arch=arm64:NoSchedule keeps it off';
    const rows: readonly (readonly [title: string, advice: readonly string[], expected: readonly string[]])[] = [
      ['of 4 replicas', deployed(4), [`${ZONES}: at most 2 of its 4 pods can run; ${CURES}`]],
      [
        'of 2 replicas, whose rollout starts a third first',
        deployed(2),
        [`${ZONES}: only 2 pods can run, so a rollout that first starts one more would wait for ever; ${CURES}`],
      ],
      ['of 1 replica', deployed(1), []],
      ['of 2 replicas that are told apart by revision', deployed(2, { matchLabelKeys: ['pod-template-hash'] }), []],
      ['in the mode both', deployed(4, {}, 'both'), []],
      [
        'that asks for more domains than there are',
        deployed(4, { minDomains: 3 }),
        [
          `${ZONES}: at most 2 of its 4 pods can run; add a node in another domain of zone that can run it, or lower minDomains of that constraint (docs/workloads.md)`,
        ],
      ],
    ];
    for (const [title, advice, expected] of rows) {
      it(`${expected.length > 0 ? 'names' : 'does not name'} a Deployment ${title}`, () => {
        expect(advice).to.deep.equal(expected);
      });
    }
  });

  describe('in report', () => {
    const nodes: readonly Node[] = [
      node('amd64', { name: 'amd64-1', labels: { zone: 'a' } }),
      node('amd64', { name: 'amd64-2', labels: { zone: 'b' } }),
      node('arm64', { labels: { zone: 'a' } }),
    ];
    const IMAGE = 'web-amd64 (c-web-amd64) is only for linux/amd64';
    const of = (given: JsonObject, world: Partial<World> = {}) => {
      const [found] = report({ objects: [given], nodes, ...world }).workloads;
      return found?.verdicts.arm64?.reasons.map(({ kind, text }) => `${kind}: ${text}`);
    };

    it('is the last reason of a workload that cannot run on the nodes that count', () => {
      expect(of(web(4))).to.deep.equal([
        `image: ${IMAGE}`,
        `spread: ${EMPTY}: at most 2 of its 4 pods can run; ${CURES}`,
      ]);
    });
    it('is said as a condition where there is no such node yet', () => {
      const expected = [
        `image: ${IMAGE}`,
        `spread: its topology spread over kubernetes.io/hostname (DoNotSchedule) also counts nodes that it cannot use: beside arm64 nodes, some of its pods may stay Pending; ${CURES}`,
      ];
      expect(of(web(4), { nodes: nodes.slice(0, 2) })).to.deep.equal(expected);
      expect(of(web(4), { nodes: [] })).to.deep.equal(expected);
    });
    it('leaves the image the only one that holds the workload back', () => {
      const { images, summary } = report({ objects: [web(4)], nodes });
      expect(images.map(({ blocking }) => blocking.arm64?.alone.workloads)).to.deep.equal([1]);
      expect(summary.targets.arm64?.rebuilds.map(({ frees }) => frees.workloads)).to.deep.equal([1]);
    });

    const without: readonly (readonly [title: string, given: JsonObject, world?: Partial<World>])[] = [
      ['no more pods than can run', web(1)],
      ['domains that have both kinds of nodes', web(4, [spread('zone')])],
      ['nodeTaintsPolicy: Honor', web(4, [spread(HOSTNAME, { nodeTaintsPolicy: 'Honor' })])],
      ['the mode both', web(4), { settings: { mode: 'both' } }],
      ['ScheduleAnyway', web(4, [spread(HOSTNAME, { whenUnsatisfiable: 'ScheduleAnyway' })])],
    ];
    for (const [title, given, world] of without) {
      it(`is left out of the reasons with ${title}`, () => expect(of(given, world)).to.deep.equal([`image: ${IMAGE}`]));
    }
    it('is left out of the reasons of a DaemonSet', () => {
      const given = { kind: 'DaemonSet', images: ['web-amd64'], labels: { app: 'web' } };
      const pod = { topologySpreadConstraints: [spread(HOSTNAME)] };
      expect(verdict({ ...given, pod }, { nodes })).to.have.length(2);
    });
  });

  describe('in check', () => {
    const notesOn = (given: JsonObject, on: readonly string[], mode: Settings['mode'] = 'taints') => {
      const inventory = createInventory();
      inventory.add(given);
      const circumstances = {
        settings: settings({ mode }),
        architectures: on,
        namespaceOf: (name: string) => ({ name, labels: {}, preferred: undefined }),
        namesOf: (image: string) => [image],
        assessesAll: true,
      };
      return checkObjects(inventory.units(), on, circumstances, ({ image }) => answer(image)).notes;
    };
    const note = {
      ...{ kind: 'Deployment', namespace: 'shop', name: 'web' },
      text: `its topology spread over kubernetes.io/hostname (DoNotSchedule) also counts nodes that it cannot use: beside arm64 nodes, some of its pods may stay Pending; ${CURES}`,
    };
    const rows: readonly (readonly [title: string, found: unknown, expected: unknown])[] = [
      ['an object that lacks an architecture', notesOn(web(2), ['amd64', 'arm64']), [note]],
      ['an object with what is asked for', notesOn(web(2), ['amd64']), undefined],
      [
        'an object with Honor',
        notesOn(web(2, [spread('x', { nodeTaintsPolicy: 'Honor' })]), ['amd64', 'arm64']),
        undefined,
      ],
      ['the mode affinity', notesOn(web(2), ['amd64', 'arm64'], 'affinity'), undefined],
    ];
    for (const [title, found, expected] of rows) {
      it(`${expected === undefined ? 'is not mentioned' : 'is a note'} with ${title}`, () => {
        expect(found).to.deep.equal(expected);
      });
    }
    it('names the zone where zones are what counts', () => {
      const zone = spread('topology.kubernetes.io/zone');
      expect(notesOn(web(2, [zone], { strategy: { type: 'Recreate' } }), ['amd64', 'arm64'])?.[0]?.text).to.include(
        'where a zone has only arm64 nodes, some of its pods may stay Pending',
      );
    });
  });

  describe('in plan', () => {
    const nodes = lastingNodes(
      [node('amd64', { name: 'amd64-1' }), node('amd64', { name: 'amd64-2' }), node('arm64')],
      settings(),
    );
    const placed: Placement = {
      ...{ kind: 'place', architectures: ['amd64'], basis: 'images', followsCluster: false, os: undefined },
      ...{ failed: [], unknown: [], images: [] },
    };
    const labels = { app: 'web' };
    const subject = (bound: boolean, more: JsonObject = {}): Subject => {
      const constraints = readHardSpread({ topologySpreadConstraints: [spread(HOSTNAME, more)] }, labels);
      const demands: Demands = readDemands({});
      return {
        workload: { kind: 'Deployment', namespace: 'shop', name: 'web' },
        decision: placed,
        settings: settings(),
        tolerations: [],
        bound,
        nodeArchitecture: bound ? 'amd64' : undefined,
        asked: undefined,
        spread: spreadPod({ template: template([], {}, { labels }), demands, constraints }, placed, settings()),
      };
    };
    const judge = (
      subjects: readonly Subject[],
      { rollsAhead = false, others = [] }: { rollsAhead?: boolean; others?: readonly OtherPod[] } = {},
    ): Pick<JudgedWorkload, 'pendingAtRestart' | 'pendingNow' | 'why'> | undefined =>
      overviewOf(subjects, {
        architectures: ['amd64', 'arm64'],
        allTainted: true,
        spread: {
          limitOf: createSpreadLimits(nodes, settings().taints),
          othersOf: () => others,
          rollsAhead: () => rollsAhead,
        },
      })[0];
    const [runs, waits] = [subject(true), subject(false)];
    const rows: readonly (readonly [
      title: string,
      judged: ReturnType<typeof judge>,
      atRestart: boolean,
      now: boolean,
      why: string,
    ])[] = [
      ['four pods that run', judge([runs, runs, runs, runs]), true, false, 'at most 2 of its 4 pods can run'],
      [
        'two that run and two that wait',
        judge([runs, runs, waits, waits]),
        true,
        true,
        'at most 2 of its 4 pods can run',
      ],
      ['two pods', judge([runs, runs]), false, false, ''],
      [
        'two pods whose rollout starts a third',
        judge([runs, runs], { rollsAhead: true }),
        true,
        false,
        'only 2 pods can run',
      ],
      ['one pod whose rollout starts a second', judge([runs], { rollsAhead: true }), false, false, ''],
      [
        'four pods, where others count on the empty node',
        judge([runs, runs, runs, runs], { others: [{ labels, nodeName: 'arm64-1' }] }),
        false,
        false,
        '',
      ],
      [
        'four pods with Honor',
        judge(Array<Subject>(4).fill(subject(true, { nodeTaintsPolicy: 'Honor' }))),
        false,
        false,
        '',
      ],
    ];
    for (const [title, judged, atRestart, now, why] of rows) {
      it(`counts ${atRestart || now ? 'as Pending' : 'nothing'}: ${title}`, () => {
        expect([judged?.pendingAtRestart, judged?.pendingNow]).to.deep.equal([atRestart, now]);
        expect(judged?.why ?? '').to.include(why);
        expect(judged?.why === '').to.equal(why === '');
      });
    }
  });
});
