import { expect } from 'chai';
import { at, list, object, objects } from '../simulator/json.ts';
import {
  type Context,
  createPod,
  done,
  fieldErrors,
  generation,
  NOWHERE,
  OURS,
  PODS,
  patchFailed,
  podOf,
  refused,
  spec,
  versionOf,
} from './context.ts';

const ADD = { op: 'add', path: '/spec/tolerations/-', value: OURS };

/** Tolerations, generation, and changes that a patch of a pod may not make. */
export function describePodPatches(context: () => Context): void {
  const patch = (name: string, body: unknown, type?: string) =>
    context().client.request('PATCH', `${PODS}/${name}?fieldManager=archaware-controller`, body, type);
  const pending = (name: string) => createPod(context(), name, NOWHERE);

  it('adds a toleration to the existing list, and counts the generation', async () => {
    const pod = await pending('adds');
    expect(generation(pod)).to.equal(1);
    const patched = done(await patch('adds', [ADD]));
    expect(spec(patched, 'tolerations')).to.deep.equal([...list(spec(pod, 'tolerations')), OURS]);
    expect(generation(patched)).to.equal(2);
  });

  it('checks a patch as a dry run, and stores nothing of it', async () => {
    await pending('dry-patch');
    const path = `${PODS}/dry-patch?fieldManager=archaware-controller&dryRun=All`;
    const { client } = context();
    const changed = [{ op: 'replace', path: '/spec/containers/0/name', value: 'other' }];
    expect(list(spec(done(await client.request('PATCH', path, [ADD])), 'tolerations'))).to.deep.include(OURS);
    expect((await client.request('PATCH', path, changed)).status).to.equal(422);
    const { body } = await client.request('GET', `${PODS}/dry-patch`);
    expect([generation(object(body)), list(spec(object(body), 'tolerations')).length]).to.deep.equal([1, 2]);
  });

  it('accepts the same toleration twice', async () => {
    await pending('twice');
    done(await patch('twice', [ADD]));
    expect(
      objects(spec(done(await patch('twice', [ADD])), 'tolerations')).filter(({ key }) => key === OURS.key),
    ).to.have.length(2);
  });

  it('gives a new pod the default tolerations', async () => {
    const tolerations = objects(spec(await pending('defaults'), 'tolerations'));
    const toleration = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 };
    const keys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
    expect(tolerations).to.deep.equal(keys.map((key) => ({ key, ...toleration })));
  });

  const message = 'Forbidden: existing toleration can not be modified except its tolerationSeconds';
  const refusals: readonly (readonly [string, unknown, string?])[] = [
    ['a removal', [{ op: 'remove', path: '/spec/tolerations/0' }]],
    ['a change', [{ op: 'replace', path: '/spec/tolerations/0/key', value: 'other' }]],
    ['a whole list over the existing one', [{ op: 'add', path: '/spec/tolerations', value: [OURS] }]],
    [
      'a strategic merge of the list, which is atomic',
      { spec: { tolerations: [OURS] } },
      'application/strategic-merge-patch+json',
    ],
  ];
  for (const [index, [what, body, type]] of refusals.entries()) {
    it(`refuses ${what}`, async () => {
      await createPod(context(), `refuses-${index}`, {
        ...NOWHERE,
        tolerations: [{ key: 'first', operator: 'Exists', effect: 'NoSchedule' }],
      });
      const answer = await patch(`refuses-${index}`, body, type);
      expect(fieldErrors(answer)).to.deep.equal([`spec.tolerations: ${message}`]);
      const details = object(at(answer.body, 'details'));
      expect([details.name, details.kind]).to.deep.equal([`refuses-${index}`, 'Pod']);
    });
  }

  it('changes tolerationSeconds', async () => {
    await pending('seconds');
    const patched = done(
      await patch('seconds', [{ op: 'replace', path: '/spec/tolerations/0/tolerationSeconds', value: 5 }]),
    );
    expect(at(objects(spec(patched, 'tolerations'))[0], 'tolerationSeconds')).to.equal(5);
  });

  it('tests uid, generation and the tolerations as they were read', async () => {
    const pod = await pending('tests');
    const tests = [
      { op: 'test', path: '/metadata/uid', value: at(pod, 'metadata', 'uid') },
      { op: 'test', path: '/metadata/generation', value: 1 },
      { op: 'test', path: '/spec/tolerations', value: spec(pod, 'tolerations') },
      ADD,
    ];
    done(await patch('tests', tests));
    patchFailed(await patch('tests', tests));
    patchFailed(await patch('tests', [{ op: 'test', path: '/metadata/uid', value: 'other' }, ADD]));
  });

  it('reports a patch with a missing path or a missing operation like a failed test', async () => {
    await pending('missing-path');
    patchFailed(await patch('missing-path', [{ op: 'remove', path: '/spec/schedulingGates' }]));
    patchFailed(await patch('missing-path', [{ op: 'add', path: '/spec/nothing/-', value: 1 }]));
    patchFailed(await patch('missing-path', [{ op: 'replace', path: '/spec/tolerations/9', value: OURS }]));
    patchFailed(await patch('missing-path', [{ op: 'test', path: '/spec/nothing/deeper', value: null }]));
  });

  it('compares by fields, not by their order', async () => {
    const pod = await pending('order');
    const reversed = objects(spec(pod, 'tolerations')).map((item) =>
      Object.fromEntries(Object.entries(item).reverse()),
    );
    done(await patch('order', [{ op: 'test', path: '/spec/tolerations', value: reversed }, ADD]));
  });

  it('finds a conflict in an added empty value and in 300.0', async () => {
    const pod = await pending('spelling');
    const tolerations = objects(spec(pod, 'tolerations'));
    const path = '/spec/tolerations';
    patchFailed(
      await patch('spelling', [{ op: 'test', path, value: tolerations.map((item) => ({ ...item, value: '' })) }]),
    );
    const whole = JSON.stringify([{ op: 'test', path, value: tolerations }]);
    patchFailed(await patch('spelling', whole.replace('300', '300.0')));
    done(await patch('spelling', whole));
  });

  it('compares strings as Go escapes them', async () => {
    await createPod(context(), 'escapes', NOWHERE, { annotations: { text: 'a<b>&c' } });
    const test = '[{"op":"test","path":"/metadata/annotations/text","value":"a<b>&c"}]';
    patchFailed(await patch('escapes', test));
    done(await patch('escapes', test.replace('a<b>&c', 'a\\u003cb\\u003e\\u0026c')));
  });

  it('changes an image in place, which counts the generation', async () => {
    await pending('image');
    const patched = done(await patch('image', [{ op: 'replace', path: '/spec/containers/0/image', value: 'other:2' }]));
    expect(generation(patched)).to.equal(2);
  });

  it('refuses other changes of the spec', async () => {
    await pending('fixed');
    const [error, ...more] = fieldErrors(
      await patch('fixed', [{ op: 'add', path: '/spec/nodeSelector', value: { more: 'x' } }]),
    );
    expect(more).to.deep.equal([]);
    expect(error).to.match(/^spec: Forbidden: pod updates may not change fields other than/);
  });

  it('keeps the version of a pod if a patch does not change it', async () => {
    const pod = await pending('same');
    const patched = done(await patch('same', [{ op: 'add', path: '/spec/containers/0/name', value: 'app' }]));
    expect(generation(patched)).to.equal(1);
    expect(spec(patched, 'tolerations')).to.deep.equal(spec(pod, 'tolerations'));
    const again = done(await patch('same', []));
    expect(versionOf(again)).to.equal(versionOf(patched));
  });

  it('leaves the status unchanged when the pod is patched, and the spec when its status is patched', async () => {
    await pending('halves');
    const phase = done(await patch('halves', [{ op: 'replace', path: '/status/phase', value: 'Failed' }]));
    expect(at(phase, 'status', 'phase')).to.equal('Pending');
    const operations = [
      { op: 'add', path: '/status/message', value: 'said' },
      { op: 'replace', path: '/spec/containers/0/image', value: 'other:2' },
    ];
    const status = done(await context().client.request('PATCH', `${PODS}/halves/status`, operations));
    expect(at(status, 'status', 'message')).to.equal('said');
    expect(at(objects(spec(status, 'containers'))[0], 'image')).to.equal('registry.example.com/app:1');
    expect(generation(status)).to.equal(1);
  });

  it('answers 404 for a pod or a namespace that does not exist', async () => {
    const status = refused(await patch('nobody', [ADD]), 404, 'NotFound');
    expect(status.message).to.equal('pods "nobody" not found');
    expect(status.details).to.deep.equal({ name: 'nobody', kind: 'pods' });
    const answer = await context().client.request('POST', '/api/v1/namespaces/nowhere/pods', podOf('x'));
    expect(refused(answer, 404, 'NotFound').message).to.equal('namespaces "nowhere" not found');
  });

  it('answers 409 for a second creation and for a PUT of an old version', async () => {
    const pod = await pending('conflicts');
    const created = refused(await context().client.request('POST', PODS, podOf('conflicts')), 409, 'AlreadyExists');
    expect(created.message).to.equal('pods "conflicts" already exists');
    const recreated = { ...pod, metadata: { name: 'conflicts', uid: 'other' } };
    refused(await context().client.request('PUT', `${PODS}/conflicts`, recreated), 409, 'Conflict');
    done(await patch('conflicts', [ADD]));
    const put = refused(await context().client.request('PUT', `${PODS}/conflicts`, pod), 409, 'Conflict');
    expect(put.message).to.equal(
      'Operation cannot be fulfilled on pods "conflicts": the object has been modified; please apply your changes to the latest version and try again',
    );
    expect(put.details).to.deep.equal({ name: 'conflicts', kind: 'pods' });
  });

  it('refuses a patch of an unknown format, and one that is not JSON', async () => {
    await pending('formats');
    refused(await patch('formats', [ADD], 'text/plain'), 415, 'UnsupportedMediaType');
    refused(await patch('formats', '[{', 'application/json-patch+json'), 400, 'BadRequest');
  });

  it('records who owns the tolerations', async () => {
    await pending('owners');
    const patched = done(await patch('owners', [ADD]));
    const entries = objects(at(patched, 'metadata', 'managedFields'));
    const owners = entries.filter(({ fieldsV1 }) => at(fieldsV1, 'f:spec', 'f:tolerations') !== undefined);
    expect(owners.map(({ manager, operation }) => [manager, operation])).to.deep.equal([
      ['archaware-controller', 'Update'],
    ]);
  });

  it('deletes an unscheduled pod at once, if the uid is right', async () => {
    const pod = await pending('deleted');
    const { client } = context();
    const wrong = refused(
      await client.request('DELETE', `${PODS}/deleted`, { preconditions: { uid: 'other' } }),
      409,
      'Conflict',
    );
    expect(wrong.message).to.contain('the UID in the precondition (other) does not match the UID in record');
    const uid = at(pod, 'metadata', 'uid');
    done(await client.request('DELETE', `${PODS}/deleted`, { preconditions: { uid } }));
    refused(await client.request('GET', `${PODS}/deleted`), 404, 'NotFound');
  });
}

/** With the admission plug-in DefaultTolerationSeconds switched off. */
export function describeBarePods(context: () => Context): void {
  it('adds the list to a pod without one, tested as null', async () => {
    const pod = await createPod(context(), 'bare', NOWHERE);
    expect(spec(pod, 'tolerations')).to.equal(undefined);
    const patch = (body: unknown) => context().client.request('PATCH', `${PODS}/bare`, body);
    patchFailed(await patch([ADD]));
    patchFailed(await patch([{ op: 'test', path: '/spec/tolerations', value: [] }]));
    const absent = { op: 'test', path: '/spec/tolerations', value: null };
    const whole = [absent, { op: 'add', path: '/spec/tolerations', value: [OURS] }];
    expect(spec(done(await patch(whole)), 'tolerations')).to.deep.equal([OURS]);
    patchFailed(await patch(whole));
  });
}
