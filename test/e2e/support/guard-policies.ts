/**
 * Tries every policy of the installation: one that acts on nothing, or fails, must not stay unnoticed. A MutatingAdmissionPolicy with
 * the failure policy Ignore does nothing, and says nothing, if Kubernetes cannot evaluate it.
 */
import { expect } from 'chai';
import { parseAllDocuments, stringify } from 'yaml';
import { type Client, expectSuccess } from '../../../hack/cluster/client.ts';
import { at, listAt } from '../../../hack/cluster/json.ts';
import { readDaemonSet } from '../../../src/placement/objects/daemonset.ts';
import { keepProbes } from '../../../src/placement/patch/keep-probe.ts';
import { settings } from '../../placement/objects.ts';
import { manifestWithoutDeployment } from '../../support/manifest.ts';
import { annotation, nameOf, tolerations } from '../../support/objects.ts';
import { daemonSet, pod } from '../../support/workloads.ts';
import { pathOf } from '../../support/world.ts';
import { add, part, remove, replace } from './account.ts';
import { NOTES, own } from './guard-rows.ts';
import type { LiveWorld } from './world.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const KEEP = 'archaware-keep';
const NS = 'kept';
const images = ['registry.example.com/app:1'];
const theirs = { key: 'dedicated', operator: 'Equal', value: 'gpu', effect: 'NoSchedule' };
const RECORD = JSON.stringify({
  ...{ images, subject: '0123abcd4567cdef' },
  tolerations: [own('amd64'), own('arm64')],
});
const OURS = ['supported-arch=amd64:NoSchedule', 'supported-arch=arm64:NoSchedule'];
const list = '/spec/template/spec/tolerations';
const notes = `/metadata/annotations/${part(NOTES)}`;
const image = replace('/spec/template/spec/containers/0/image', 'registry.example.com/app:2');

/** The policies that are there, of both kinds. */
export async function policyNames({ cluster }: LiveWorld): Promise<string[]> {
  const kinds = ['validatingadmissionpolicies', 'mutatingadmissionpolicies'];
  const answers = await Promise.all(kinds.map((kind) => cluster.request('GET', `${ADMISSION}/${kind}`)));
  return answers.flatMap(({ status, body }) => (status === 404 ? [] : listAt(body, 'items').map(nameOf)));
}

/** What the API server found wrong with the expressions of the policies, once it has checked all of them. */
export async function typeWarnings(world: LiveWorld): Promise<string[]> {
  const policies = await world.eventually('the policies to be type checked', async () => {
    const { body } = await world.cluster.request('GET', `${ADMISSION}/validatingadmissionpolicies`);
    const found = listAt(body, 'items');
    const isChecked = (policy: unknown) =>
      at(policy, 'status', 'observedGeneration') === at(policy, 'metadata', 'generation');
    return found.length > 0 && found.every(isChecked) && found;
  });
  return policies.flatMap((policy) =>
    listAt(policy, 'status', 'typeChecking', 'expressionWarnings').map(
      (one) => `${nameOf(policy)}: ${at(one, 'warning')}`,
    ),
  );
}

type Row = readonly [
  title: string,
  patch: readonly unknown[] | object,
  left: readonly string[],
  record: string | undefined,
];

/** What an update of another writer leaves in a DaemonSet that archaware has served. */
const CORRECTED: readonly Row[] = [
  ['drops its tolerations and the record', [remove(list), remove(notes)], OURS, RECORD],
  ['drops its tolerations and all annotations', [remove(list), remove('/metadata/annotations')], OURS, RECORD],
  [
    'drops them and brings its own',
    [replace(list, [theirs]), remove(notes)],
    ['dedicated=gpu:NoSchedule', ...OURS],
    RECORD,
  ],
  ['drops one of them', [replace(list, [own('arm64')])], OURS, RECORD],
  ['drops them together with a new image', [remove(list), image], OURS, RECORD],
];
const LET_THROUGH: readonly Row[] = [
  ['changes something else', [image], ['dedicated=gpu:NoSchedule', ...OURS], RECORD],
  ['tolerates everything instead', [replace(list, [{ operator: 'Exists' }]), remove(notes)], [':'], undefined],
  [
    'says that archaware is to ignore it',
    [remove(list), remove(notes), add('/metadata/labels', { 'archaware.dev/ignore': 'true' })],
    [],
    undefined,
  ],
];

/**
 * Describes the policy that keeps tolerations in DaemonSets, first as it is, then with the failure policy Fail: only then a failure
 * shows where the policy should let an update through.
 */
export function describeKeep(worldOf: () => LiveWorld): void {
  describeBoth(KEEP, 'the policy that keeps tolerations in DaemonSets', worldOf, (worldNow) => {
    const path = (name: string) => pathOf('DaemonSet', NS, name);
    const dryRun = (name: string, patch: Row[1], manager = 'helm') =>
      worldNow().cluster.request('PATCH', `${path(name)}?dryRun=All&fieldManager=${manager}`, patch);
    const outcome = async (name: string, patch: Row[1], manager?: string) => {
      const body = expectSuccess('the dry run', await dryRun(name, patch, manager));
      return { left: tolerations(at(body, 'spec', 'template')), record: annotation(body, NOTES) };
    };
    const isKept = async () => (await outcome('served', [remove(list)])).left.length === OURS.length;
    const prepare = async (world: LiveWorld) => {
      await world.namespace(NS);
      const spec = { nodeSelector: { 'example.com/nowhere': 'yes' } };
      const served = [theirs, own('amd64'), own('arm64')];
      await world.create(
        daemonSet(NS, 'served', { images, tolerations: served, spec }),
        daemonSet(NS, 'other', { images, tolerations: served, spec }),
      );
      await world.patch('DaemonSet', NS, 'served', { metadata: { annotations: { [NOTES]: RECORD } } });
    };

    for (const [title, patch, left, record] of CORRECTED) {
      it(`corrects an update that ${title}`, async () => {
        expect(await outcome('served', patch)).to.deep.equal({ left, record });
      });
    }
    for (const [title, patch, left, record] of LET_THROUGH) {
      it(`leaves an update as it is that ${title}`, async () => {
        expect(await outcome('served', patch)).to.deep.equal({ left, record });
      });
    }
    it('leaves the updates of archaware as they are, and DaemonSets without a record', async () => {
      const drops = [remove(list), remove(notes)];
      expect(await outcome('served', drops, 'archaware-controller')).to.deep.equal({ left: [], record: undefined });
      expect(await outcome('other', [remove(list)])).to.deep.equal({ left: [], record: undefined });
    });
    return { isKept, prepare };
  });
}

/** Describes the policy that keeps archaware's tolerations in pods, as it is and with the failure policy Fail. */
export function describeKeepPods(worldOf: () => LiveWorld): void {
  const namespace = 'kept-pods';
  describeBoth(`${KEEP}-pods`, 'the policy that keeps tolerations in pods', worldOf, (worldNow) => {
    const send = async (patch: Row[1], manager = 'kubectl') => {
      const path = `${pathOf('Pod', namespace, 'bare')}?dryRun=All&fieldManager=${manager}`;
      const { status, body } = await worldNow().cluster.request('PATCH', path, patch);
      return status === 200 ? tolerations(body).filter((text) => !text.startsWith('node.kubernetes.io/')) : status;
    };
    const onlyTheirs = [replace('/spec/tolerations', [theirs])];
    const kept = ['dedicated=gpu:NoSchedule', ...OURS];
    const isKept = async () => JSON.stringify(await send(onlyTheirs)) === JSON.stringify(kept);
    const prepare = async (world: LiveWorld) => {
      await world.namespace(namespace);
      const spec = { nodeSelector: { 'example.com/nowhere': 'yes' } };
      await world.create(pod(namespace, 'bare', { images, tolerations: [theirs, own('amd64'), own('arm64')], spec }));
    };

    it('corrects an update that drops them, some of them, or all tolerations', async () => {
      expect(await send(onlyTheirs)).to.deep.equal(kept);
      expect(await send([replace('/spec/tolerations', [theirs, own('arm64')])])).to.have.members(kept);
      expect(await send({ spec: { tolerations: null } })).to.equal(422);
    });
    it('leaves other updates as they are, and those of archaware', async () => {
      expect(await send({ metadata: { labels: { changed: 'yes' } } })).to.deep.equal(kept);
      expect(await send([replace('/spec/tolerations', [own('amd64'), own('arm64')])])).to.equal(422);
      expect(await send(onlyTheirs, 'archaware-controller')).to.equal(422);
    });
    return { isKept, prepare };
  });
}

/** What is there before the first test of a policy, and whether the policy corrects an update of it. */
type Kept = { readonly prepare: (world: LiveWorld) => Promise<void>; readonly isKept: () => Promise<boolean> };

/** Describes a policy as it is shipped, and then with the failure policy Fail. */
function describeBoth(
  name: string,
  what: string,
  worldOf: () => LiveWorld,
  tests: (world: () => LiveWorld) => Kept,
): void {
  for (const failurePolicy of ['Ignore', 'Fail'] as const) {
    describe(`${what}, with the failure policy ${failurePolicy}`, () => {
      const { prepare, isKept } = tests(worldOf);
      const remove = async (kind: string, policy: string) =>
        worldOf().cluster.request('DELETE', `${ADMISSION}/${kind}/${policy}`);
      before(async () => {
        if (failurePolicy === 'Ignore') await prepare(worldOf());
        else {
          await remove('mutatingadmissionpolicybindings', name);
          await worldOf().eventually('the policy to be gone', async () => !(await isKept()));
          await worldOf().cluster.apply((await keepObjects(name)).strict);
        }
        await worldOf().eventually('the policy to be in force', isKept);
      });
      after(async () => {
        if (failurePolicy === 'Ignore') return;
        await remove('mutatingadmissionpolicybindings', `${name}-strict`);
        await remove('mutatingadmissionpolicies', `${name}-strict`);
        await worldOf().eventually('the stricter policy to be gone', async () => !(await isKept()));
        await worldOf().cluster.apply((await keepObjects(name)).shipped);
        await worldOf().eventually('the policy to be in force again', isKept);
      });
    });
  }
}

/** A policy and its binding as they are shipped, and under another name with the failure policy Fail. */
async function keepObjects(name: string): Promise<{ shipped: string; strict: string }> {
  const found = parseAllDocuments(await manifestWithoutDeployment())
    .map((document): unknown => document.toJS())
    .filter((object) => nameOf(object) === name);
  expect(found).to.have.length(2);
  const shipped = found.map((object) => stringify(object)).join('---\n');
  const strict = shipped.replace('failurePolicy: Ignore', 'failurePolicy: Fail').replaceAll(name, `${name}-strict`);
  expect(strict).to.include('failurePolicy: Fail');
  return { shipped, strict };
}

/** Sends the dry run of the leader, with the rights of archaware's account. Returns the status, and what the template has then. */
export async function probeAsAccount(world: LiveWorld, account: Client, namespace: string, name: string) {
  const found = await world.get('DaemonSet', namespace, name);
  const object = typeof found === 'object' && found !== null ? { ...found } : {};
  const [probe] = keepProbes([readDaemonSet(object)], (each) => ({ name: each, labels: {} }), settings());
  if (probe === undefined) throw new Error(`${name} has nothing to protect`);
  const query = '?dryRun=All&fieldManager=archaware-probe';
  const { status, body } = await account.request(
    'PATCH',
    `${pathOf('DaemonSet', namespace, name)}${query}`,
    probe.patch,
  );
  return { status, message: String(at(body, 'message') ?? ''), tolerations: tolerations(at(body, 'spec', 'template')) };
}
