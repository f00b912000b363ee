import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { at, type JsonObject, list, objects } from '../simulator/json.ts';
import { type Context, done, NAMESPACE, OURS, PODS, patchFailed } from './context.ts';
import { taintNodes } from './scheduling.ts';

const SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`;
const PATH = '/spec/template/spec/tolerations';
const BOTH = ['amd64', 'arm64'].map((value) => ({ ...OURS, value }));
/** The two documents of the manifest that make the guard of DaemonSets. */
const GUARD = readFileSync(new URL('../../manifests/archaware-controller.yaml', import.meta.url), 'utf8')
  .split(/^---$/m)
  .filter(
    (document) => document.includes('kind: MutatingAdmissionPolicy') && /^ +name: archaware-keep$/m.test(document),
  )
  .join('---\n');

export function describeDaemonSets(context: () => Context): void {
  const patch = (name: string, body: unknown, query = '') =>
    context().client.request('PATCH', `${SETS}/${name}${query}`, body);
  const get = async (name: string) => done(await context().client.request('GET', `${SETS}/${name}`));
  const podsOf = async (name: string) =>
    objects(done(await context().client.request('GET', `${PODS}?labelSelector=app%3D${name}`)).items);
  const status = (name: string, wanted: JsonObject) =>
    context().cluster.waitFor(`${name} to have ${JSON.stringify(wanted)}`, async () => {
      const set = await get(name);
      const wants = { ...wanted, observedGeneration: at(set, 'metadata', 'generation') };
      return Object.entries(wants).every(([field, value]) => (at(set, 'status', field) ?? 0) === value);
    });
  const create = async (name: string, tolerations: readonly JsonObject[] = [], annotations: JsonObject = {}) => {
    const labels = { app: name };
    const containers = [{ name: 'app', image: 'registry.example.com/app:1' }];
    const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers, tolerations } };
    const metadata = { name, annotations };
    done(
      await context().client.request('POST', SETS, { metadata, spec: { selector: { matchLabels: labels }, template } }),
    );
  };
  let probes = 0;
  /** The DaemonSet controller may have the nodes as they were before, for a moment: it is asked by DaemonSets of their own. */
  const taintsAreSeen = () =>
    context().cluster.waitFor('the DaemonSet controller to see the taints', async () => {
      const name = `probe-${probes++}`;
      await create(name);
      await status(name, {});
      const desired = at(await get(name), 'status', 'desiredNumberScheduled') ?? 0;
      done(await context().client.request('DELETE', `${SETS}/${name}`));
      return desired === 0;
    });
  const onNodes = { desiredNumberScheduled: 2, numberAvailable: 2, updatedNumberScheduled: 2, numberMisscheduled: 0 };

  afterEach(() => taintNodes(context(), false));

  it('has no pod on tainted nodes until its template tolerates the taint', async () => {
    await taintNodes(context(), true);
    await taintsAreSeen();
    await create('late');
    await status('late', { desiredNumberScheduled: 0, currentNumberScheduled: 0 });
    expect(await podsOf('late')).to.deep.equal([]);
    patchFailed(await patch('late', [{ op: 'add', path: `${PATH}/-`, value: OURS }]));
    const whole = [
      { op: 'test', path: PATH, value: null },
      { op: 'add', path: PATH, value: BOTH },
    ];
    expect(at(done(await patch('late', whole)), 'metadata', 'generation')).to.equal(2);
    await status('late', onNodes);
  });

  it('keeps its pods on nodes that are tainted later, and loses them all with the next change of its template', async () => {
    await create('early');
    await status('early', onNodes);
    const before = (await podsOf('early')).map((pod) => at(pod, 'metadata', 'uid'));
    await taintNodes(context(), true);
    // The taint alone triggers nothing in the DaemonSet controller. Another change of the object does, and leaves the
    // pods.
    expect(at(await get('early'), 'status', 'desiredNumberScheduled')).to.equal(2);
    done(await patch('early', { metadata: { annotations: { looked: 'at' } } }));
    await status('early', { desiredNumberScheduled: 0, numberMisscheduled: 2 });
    expect((await podsOf('early')).map((pod) => at(pod, 'metadata', 'uid'))).to.deep.equal(before);
    done(await patch('early', [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value: 'other:2' }]));
    await context().cluster.waitFor('the pods to be gone', async () => (await podsOf('early')).length === 0);
    await status('early', { desiredNumberScheduled: 0, currentNumberScheduled: 0 });
  });

  it('may remove tolerations from its template, unlike a pod', async () => {
    await create('loses', BOTH);
    const operations = [
      { op: 'test', path: PATH, value: BOTH },
      { op: 'remove', path: `${PATH}/1` },
    ];
    const set = done(await patch('loses', operations));
    expect(at(set, 'spec', 'template', 'spec', 'tolerations')).to.deep.equal(BOTH.slice(0, 1));
  });

  it('counts its generation by its template alone', async () => {
    await create('counted');
    const labelled = done(await patch('counted', { metadata: { annotations: { 'archaware.dev/tolerations': '[]' } } }));
    expect(at(labelled, 'metadata', 'generation')).to.equal(1);
  });

  it('lets a writer give up a list that it owns, in a request that changes nothing else', async () => {
    const ours = (set: JsonObject) => {
      const entries = objects(at(set, 'metadata', 'managedFields'));
      const index = entries.findIndex(({ manager }) => manager === 'archaware-controller');
      return { index, fields: at(entries[index], 'fieldsV1') };
    };
    const by = '?fieldManager=archaware-controller';
    const add = (value: string) => [{ op: 'add', path: `${PATH}/-`, value: { ...OURS, value } }];
    const kept = { 'f:metadata': { 'f:annotations': { 'f:example.com/no-such': {} } } };
    const giveUp = (index: number) => [
      { op: 'test', path: `/metadata/managedFields/${index}/manager`, value: 'archaware-controller' },
      { op: 'replace', path: `/metadata/managedFields/${index}/fieldsV1`, value: kept },
    ];
    // The DaemonSet controller writes the status, which may change the order of the entries.
    const giving = async (operations: readonly JsonObject[]) => {
      let answer: JsonObject = {};
      await context().cluster.waitFor('the entry to have its place', async () => {
        const place = ours(await get('owned')).index;
        const response = await patch('owned', [...operations, ...giveUp(place)], by);
        if (response.status !== 422) answer = done(response);
        return response.status !== 422;
      });
      return answer;
    };
    await create('owned', [{ key: 'own', operator: 'Exists' }]);
    const written = done(await patch('owned', add('riscv64'), by));
    expect(ours(written).fields).to.have.nested.property('f:spec.f:template.f:spec.f:tolerations');
    const both = await giving(add('s390x'));
    expect(ours(both).fields, 'in one request with a change').to.have.property('f:spec');
    const given = await giving([]);
    expect(ours(given).fields).to.deep.equal(kept);
    expect(at(given, 'metadata', 'generation')).to.equal(at(both, 'metadata', 'generation'));
    patchFailed(await patch('owned', giveUp(9), by));
    // The name of a field that no object has stays until somebody removes the entry.
    const noted = done(
      await patch('owned', { metadata: { annotations: { one: '1', two: '2' } } }, '?fieldManager=other'),
    );
    const bare = done(await patch('owned', { metadata: { annotations: { one: null } } }, '?fieldManager=other'));
    const changed = done(await patch('owned', [{ op: 'remove', path: PATH }], '?fieldManager=other'));
    for (const set of [noted, bare, changed]) expect(ours(set).fields).to.deep.equal(kept);
  });

  it('rolls once for a change, one node at a time', async () => {
    await create('rolls');
    await status('rolls', onNodes);
    done(await patch('rolls', [{ op: 'add', path: PATH, value: BOTH }]));
    await status('rolls', onNodes);
    const pods = await podsOf('rolls');
    expect(
      pods.every((pod) => list(at(pod, 'spec', 'tolerations')).some((item) => at(item, 'key') === OURS.key)),
    ).to.equal(true);
  });

  it("keeps the controller's tolerations and annotation if the guard is there, unless the controller removes them", async () => {
    const { cluster, client } = context();
    const annotation = 'archaware.dev/tolerations';
    const own = { key: 'own', operator: 'Exists' };
    const recorded = JSON.stringify(BOTH.map(({ key, operator, value, effect }) => ({ key, operator, value, effect })));
    await create('guarded', [...BOTH, own], { [annotation]: recorded });
    await cluster.apply(GUARD);
    const drop = [{ op: 'replace', path: PATH, value: [own] }];
    const dropAll = [{ op: 'remove', path: '/metadata/annotations' }, ...drop];
    const dropOne = [{ op: 'replace', path: PATH, value: [BOTH[0], own] }];
    const everything = [{ op: 'replace', path: PATH, value: [{ operator: 'Exists' }] }];
    const values = (set: JsonObject) =>
      objects(at(set, 'spec', 'template', 'spec', 'tolerations')).flatMap(({ value }) => value ?? []);
    const isKept = (set: JsonObject) =>
      values(set).length === 2 && at(set, 'metadata', 'annotations', annotation) === recorded;
    await cluster.waitFor('the guard', async () => isKept(done(await patch('guarded', drop, '?dryRun=All'))));
    const forget = [{ op: 'remove', path: '/metadata/annotations' }];
    for (const change of [drop, dropAll, dropOne, forget]) {
      expect(isKept(done(await patch('guarded', change, '?dryRun=All'))), JSON.stringify(change)).to.equal(true);
    }
    expect(values(done(await patch('guarded', everything, '?dryRun=All')))).to.deep.equal([]);
    const ignore = [{ op: 'add', path: '/metadata/labels', value: { 'archaware.dev/ignore': 'true' } }, ...drop];
    expect(values(done(await patch('guarded', ignore, '?dryRun=All')))).to.deep.equal([]);
    const byUs = done(await patch('guarded', forget, '?dryRun=All&fieldManager=archaware-controller'));
    expect([values(byUs).length, at(byUs, 'metadata', 'annotations', annotation)]).to.deep.equal([2, undefined]);
    expect(values(done(await patch('guarded', dropAll, '?fieldManager=archaware-controller')))).to.deep.equal([]);
    for (const plural of ['mutatingadmissionpolicybindings', 'mutatingadmissionpolicies']) {
      done(await client.request('DELETE', `/apis/admissionregistration.k8s.io/v1/${plural}/archaware-keep`));
    }
  });
}
