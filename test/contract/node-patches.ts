import { expect } from 'chai';
import { at, objects } from '../simulator/json.ts';
import { type Context, done, fieldErrors, NODE, patchFailed, spec } from './context.ts';

const OURS = { key: 'supported-arch', value: 'amd64', effect: 'NoSchedule' };
const OTHER = { key: 'other', effect: 'PreferNoSchedule' };

/** Taints and labels of nodes. */
export function describeNodePatches(context: () => Context): void {
  const patch = (body: unknown, type?: string, manager = 'archaware-controller') =>
    context().client.request('PATCH', `${NODE}?fieldManager=${manager}`, body, type);
  const taint = (value: unknown) => patch([{ op: 'add', path: '/spec/taints', value }]);
  const read = async () => done(await context().client.request('GET', NODE));

  afterEach(async () => done(await taint([])));

  it('gives a new node the taint not-ready', async () => {
    const { client } = context();
    const answer = done(await client.request('POST', '/api/v1/nodes', { metadata: { name: 'contract-new' } }));
    expect(objects(spec(answer, 'taints'))).to.deep.include({
      key: 'node.kubernetes.io/not-ready',
      effect: 'NoSchedule',
    });
    done(await client.request('DELETE', '/api/v1/nodes/contract-new'));
  });

  it('makes an empty list absent, so that only a test against null succeeds', async () => {
    expect(spec(done(await taint([])), 'taints')).to.equal(undefined);
    patchFailed(await patch([{ op: 'test', path: '/spec/taints', value: [] }]));
    patchFailed(await patch([{ op: 'add', path: '/spec/taints/-', value: OURS }]));
    const first = [
      { op: 'test', path: '/spec/taints', value: null },
      { op: 'add', path: '/spec/taints', value: [OURS] },
    ];
    expect(spec(done(await patch(first)), 'taints')).to.deep.equal([OURS]);
    patchFailed(await patch(first));
  });

  it('tests the whole list as it was read', async () => {
    done(await taint([OTHER]));
    const add = { op: 'add', path: '/spec/taints/-', value: OURS };
    patchFailed(await patch([{ op: 'test', path: '/spec/taints', value: [{ ...OTHER, value: '' }] }, add]));
    patchFailed(await patch([{ op: 'test', path: '/spec/taints', value: [OTHER, OTHER] }, add]));
    const patched = done(await patch([{ op: 'test', path: '/spec/taints', value: [OTHER] }, add]));
    expect(spec(patched, 'taints')).to.deep.equal([OTHER, OURS]);
  });

  it('tests the status in a patch of the node, and does not write it', async () => {
    const path = '/status/nodeInfo/architecture';
    done(await patch([{ op: 'test', path, value: 'amd64' }]));
    patchFailed(await patch([{ op: 'test', path, value: 'arm64' }]));
    const patched = done(await patch([{ op: 'replace', path, value: 'arm64' }]));
    expect(at(patched, 'status', 'nodeInfo', 'architecture')).to.equal('amd64');
  });

  it('tests uid and an absent annotation', async () => {
    const uid = at(await read(), 'metadata', 'uid');
    done(await patch([{ op: 'test', path: '/metadata/uid', value: uid }]));
    patchFailed(await patch([{ op: 'test', path: '/metadata/uid', value: 'other' }]));
    const path = '/metadata/labels/archaware.dev~1contract';
    done(
      await patch([
        { op: 'test', path, value: null },
        { op: 'add', path, value: 'yes' },
      ]),
    );
    done(
      await patch([
        { op: 'test', path, value: 'yes' },
        { op: 'remove', path },
      ]),
    );
    patchFailed(await patch([{ op: 'remove', path }]));
  });

  it('accepts one key with two effects, and the same entry only once', async () => {
    done(await taint([OURS, { ...OURS, effect: 'PreferNoSchedule' }]));
    const [error] = fieldErrors(await taint([OURS, { ...OURS, value: 'arm64' }]));
    expect(error).to.match(/^metadata.taints\[1\]: Duplicate value|^spec.taints\[1\]: Duplicate value/);
  });

  it('replaces all taints by a strategic merge', async () => {
    done(await taint([OTHER]));
    const patched = await patch({ spec: { taints: [OURS] } }, 'application/strategic-merge-patch+json');
    expect(spec(done(patched), 'taints')).to.deep.equal([OURS]);
  });

  it('refuses an invalid label value', async () => {
    const [error] = fieldErrors(await patch({ metadata: { labels: { contract: 'a b' } } }));
    expect(error).to.match(
      /^metadata.labels: Invalid value: "a b": a valid label must be an empty string or consist of/,
    );
  });

  it('moves the ownership of the taints to the client that changes them', async () => {
    const owners = async () =>
      objects(at(await read(), 'metadata', 'managedFields'))
        .filter(({ fieldsV1 }) => at(fieldsV1, 'f:spec', 'f:taints') !== undefined)
        .map(({ manager, operation }) => `${manager} ${operation}`);
    done(await taint([OTHER]));
    expect(await owners()).to.deep.equal(['archaware-controller Update']);
    done(await patch([{ op: 'add', path: '/spec/taints', value: [OURS] }], undefined, 'someone'));
    expect(await owners()).to.deep.equal(['someone Update']);
  });
}
