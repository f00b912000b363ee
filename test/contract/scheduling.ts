import { expect } from 'chai';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import {
  type Context,
  createPod,
  done,
  fieldErrors,
  NODE_NAMES,
  OURS,
  PODS,
  patchFailed,
  refused,
  spec,
} from './context.ts';

const AFFINITY = ['affinity', 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution'];
const GATE = { name: 'archaware.dev/architecture' };
const ARM = { key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] };
const ZONE = { key: 'zone', operator: 'Exists' };

const required = (...terms: readonly JsonObject[]) => ({
  nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
});

/**
 * Taints the nodes of the contract with their architectures, or removes the taints; resolves when the scheduler knows.
 */
export async function taintNodes(context: Context, tainted: boolean): Promise<void> {
  const { client, cluster } = context;
  for (const name of NODE_NAMES) {
    const taints = tainted ? [{ key: OURS.key, value: name.replace('contract-', ''), effect: 'NoSchedule' }] : [];
    done(await client.request('PATCH', `/api/v1/nodes/${name}`, [{ op: 'add', path: '/spec/taints', value: taints }]));
  }
  await cluster.waitFor('the scheduler to see the taints', async () => {
    const probe = `${PODS}/${text(at(await createPod(context, '', {}, { generateName: 'probe-' }), 'metadata', 'name'))}`;
    const scheduled = await cluster.waitFor('the condition PodScheduled', async () =>
      conditionOf(done(await client.request('GET', probe))),
    );
    done(await client.request('DELETE', `${probe}?gracePeriodSeconds=0`));
    return scheduled.status === (tainted ? 'False' : 'True');
  });
}

const conditionOf = (pod: JsonObject) =>
  objects(at(pod, 'status', 'conditions')).find(({ type }) => type === 'PodScheduled');

export function describeScheduling(context: () => Context): void {
  const get = async (name: string) => done(await context().client.request('GET', `${PODS}/${name}`));
  const patch = (name: string, body: unknown) => context().client.request('PATCH', `${PODS}/${name}`, body);
  const bound = (name: string) =>
    context().cluster.waitFor(`${name} to be bound`, async () => text(spec(await get(name), 'nodeName')) || false);

  before(() => taintNodes(context(), true));
  after(() => taintNodes(context(), false));

  it('leaves a pod without toleration unscheduled, and binds it when it gets one', async () => {
    await createPod(context(), 'tolerant');
    const condition = await context().cluster.waitFor('the condition PodScheduled', async () =>
      conditionOf(await get('tolerant')),
    );
    expect(condition).to.deep.include({ status: 'False', reason: 'Unschedulable' });
    done(await patch('tolerant', [{ op: 'add', path: '/spec/tolerations/-', value: { ...OURS, value: 'arm64' } }]));
    expect(await bound('tolerant')).to.equal('contract-arm64');
    const running = await context().cluster.waitFor('the pod to run', async () => {
      const pod = await get('tolerant');
      return at(pod, 'status', 'phase') === 'Running' && pod;
    });
    expect(at(running, 'metadata', 'generation')).to.equal(2);
  });

  it('schedules by node affinity and selector', async () => {
    const everything = [{ operator: 'Exists' }];
    await createPod(context(), 'affine', { tolerations: everything, affinity: required({ matchExpressions: [ARM] }) });
    await createPod(context(), 'selective', {
      tolerations: everything,
      nodeSelector: { 'kubernetes.io/arch': 'amd64' },
    });
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['contract-arm64'] }];
    await createPod(context(), 'named', { tolerations: everything, affinity: required({ matchFields }) });
    expect(await bound('affine')).to.equal('contract-arm64');
    expect(await bound('selective')).to.equal('contract-amd64');
    expect(await bound('named')).to.equal('contract-arm64');
  });

  it('accepts affinity, toleration and the gate in one patch, and no change of affinity afterwards', async () => {
    const gated = await createPod(context(), 'gated', { schedulingGates: [GATE] });
    expect(objects(at(gated, 'status', 'conditions'))[0]).to.deep.include({
      type: 'PodScheduled',
      reason: 'SchedulingGated',
    });
    const operations = [
      { op: 'test', path: '/spec/schedulingGates/0/name', value: GATE.name },
      { op: 'add', path: '/spec/affinity', value: required({ matchExpressions: [ARM] }) },
      { op: 'add', path: '/spec/tolerations/-', value: { ...OURS, value: 'arm64' } },
      { op: 'remove', path: '/spec/schedulingGates/0' },
    ];
    const released = done(await patch('gated', operations));
    expect(spec(released, 'schedulingGates')).to.equal(undefined);
    expect(await bound('gated')).to.equal('contract-arm64');
    patchFailed(await patch('gated', operations));
    const [error] = fieldErrors(await patch('gated', [{ op: 'remove', path: '/spec/affinity' }]));
    expect(error).to.match(/^spec: Forbidden: pod updates may not change fields/);
  });

  const narrowing: readonly (readonly [string, JsonObject, JsonObject, boolean])[] = [
    ['an expression appended', { matchExpressions: [ZONE] }, { matchExpressions: [ZONE, ARM] }, true],
    ['an expression put first', { matchExpressions: [ZONE] }, { matchExpressions: [ARM, ZONE] }, false],
    ['an empty term filled', {}, { matchExpressions: [ARM] }, false],
    [
      'an expression beside fields',
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['x'] }] },
      { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['x'] }], matchExpressions: [ARM] },
      true,
    ],
  ];
  for (const [index, [what, before, after, accepted]] of narrowing.entries()) {
    it(`${accepted ? 'accepts' : 'refuses'} ${what} while gated`, async () => {
      await createPod(context(), `narrowed-${index}`, { schedulingGates: [GATE], affinity: required(before) });
      const answer = await patch(`narrowed-${index}`, [
        { op: 'replace', path: '/spec/affinity', value: required(after) },
      ]);
      if (accepted) done(answer);
      else expect(fieldErrors(answer)[0]).to.contain(`spec.${AFFINITY.join('.')}.nodeSelectorTerms[0]: Invalid value`);
    });
  }

  it('refuses a new gate, and a new term beside others', async () => {
    await createPod(context(), 'regated', {
      schedulingGates: [GATE],
      affinity: required({ matchExpressions: [ZONE] }),
    });
    const gate = [{ op: 'add', path: '/spec/schedulingGates/-', value: { name: 'example.com/other' } }];
    expect(fieldErrors(await patch('regated', gate))[0]).to.match(
      /^spec.schedulingGates.*: Forbidden: only deletion is allowed/,
    );
    const path = `/spec/${AFFINITY.join('/')}/nodeSelectorTerms/-`;
    const term = [{ op: 'add', path, value: { matchExpressions: [ARM] } }];
    expect(fieldErrors(await patch('regated', term))[0]).to.contain(
      'no additions/deletions to non-empty NodeSelectorTerms',
    );
  });

  it('does not bind a gated pod', async () => {
    await createPod(context(), 'unbound', { schedulingGates: [GATE] });
    const target = { apiVersion: 'v1', kind: 'Node', name: 'contract-amd64' };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'unbound' }, target };
    const answer = await context().client.request('POST', `${PODS}/unbound/binding`, binding);
    expect(refused(answer, 409, 'Conflict').message).to.contain('pod unbound has non-empty .spec.schedulingGates');
  });
}
