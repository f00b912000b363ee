import { expect } from 'chai';
import { IGNORE_LABEL } from '../../src/names.ts';
import { at, type JsonObject, list, objects, text } from '../simulator/json.ts';
import { patching } from '../support/webhook-server.ts';
import { type Context, done, fieldErrors, NAMESPACE, NOWHERE, PODS, podOf, spec } from './context.ts';
import { SERVICE, webhooksOf } from './webhooks.ts';

const GATE = { name: 'archaware.dev/architecture' };
const SIDECAR = {
  op: 'add',
  path: '/spec/containers/-',
  value: { name: 'sidecar', image: 'registry.example.com/side' },
};
const ANNOTATION = { op: 'add', path: '/metadata/annotations', value: { webhook: 'was-here' } };
const NOT_IGNORED = {
  name: 'not-ignored',
  expression: "!has(object.metadata.labels) || object.metadata.labels[?'archaware.dev/ignore'].orValue('') != 'true'",
};
const LABEL = { op: 'add', path: '/metadata/labels', value: { webhook: 'was-here' } };
const TOLERATION = { key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' };

/** What the controller's webhook relies on when a pod is created. */
export function describeAdmission(context: () => Context): void {
  const { server, install, remove } = webhooksOf(context);
  const post = (metadata: JsonObject, podSpec: JsonObject = {}, query = '') =>
    context().client.request('POST', `${PODS}${query}`, podOf('', { ...NOWHERE, ...podSpec }, metadata));
  const generated = { generateName: 'reviewed-' };

  it('shows a pod as it will be, except for its uid and its times', async () => {
    const account = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`;
    const puller = { metadata: { name: 'puller' }, imagePullSecrets: [{ name: 'pull' }] };
    done(await context().client.request('POST', account, puller));
    await install(server().webhook('a'));
    done(await post({ name: 'shown' }, { serviceAccountName: 'puller' }, '?fieldManager=someone'));
    const [request, ...more] = server().requests('/a');
    expect(more).to.deep.equal([]);
    const { uid, userInfo, object, options, ...rest } = request ?? {};
    const [kind, resource] = [
      { group: '', version: 'v1', kind: 'Pod' },
      { group: '', version: 'v1', resource: 'pods' },
    ];
    const about = { kind, resource, requestKind: kind, requestResource: resource, name: 'shown', namespace: NAMESPACE };
    expect(rest).to.deep.equal({ ...about, operation: 'CREATE', oldObject: null, dryRun: false });
    expect(text(uid)).to.match(/^[-0-9a-f]{36}$/);
    expect(at(userInfo, 'username')).to.equal('admin');
    expect(options).to.deep.equal({ kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1', fieldManager: 'someone' });
    expect(object).to.deep.include({ kind: 'Pod', apiVersion: 'v1', status: {} });
    expect(Object.keys(at(object, 'metadata') ?? {})).to.have.members(['name', 'namespace', 'managedFields']);
    expect(at(object, 'spec')).to.deep.include({
      imagePullSecrets: [{ name: 'pull' }],
      serviceAccountName: 'puller',
      priority: 0,
      restartPolicy: 'Always',
    });
    expect(objects(at(object, 'spec', 'tolerations')).map(({ key }) => key)).to.deep.equal([
      'node.kubernetes.io/not-ready',
      'node.kubernetes.io/unreachable',
    ]);
    expect(server().calls.find(({ path }) => path === '/a')?.query).to.equal('?timeout=5s');
  });

  it('shows neither a generated name nor a field manager that was not given, and marks a dry run', async () => {
    await install(server().webhook('a'));
    const pod = done(await post(generated, {}, '?dryRun=All'));
    expect(text(at(pod, 'metadata', 'name'))).to.match(/^reviewed-.{5}$/);
    const [request] = server().requests('/a');
    expect(request).to.not.have.property('name');
    expect(at(request, 'object', 'metadata'))
      .to.include(generated)
      .and.to.not.have.any.keys('name', 'uid');
    expect(request).to.deep.include({ dryRun: true, namespace: NAMESPACE });
    expect(at(request, 'options')).to.deep.equal({
      kind: 'CreateOptions',
      apiVersion: 'meta.k8s.io/v1',
      dryRun: ['All'],
    });
  });

  it('applies a JSON patch, fills in defaults, and records no field manager for it', async () => {
    await install(server().webhook('a'));
    server().answer('/a', () =>
      patching([LABEL, SIDECAR, { op: 'add', path: '/spec/tolerations/-', value: TOLERATION }]),
    );
    const pod = done(await post(generated));
    expect(at(pod, 'metadata', 'labels')).to.deep.equal({ webhook: 'was-here' });
    expect(objects(spec(pod, 'containers'))[1]).to.deep.include({ name: 'sidecar', imagePullPolicy: 'Always' });
    expect(list(spec(pod, 'tolerations')))
      .to.have.length(3)
      .and.to.deep.include(TOLERATION);
    expect(at(pod, 'metadata', 'generation')).to.equal(1);
    const owned = JSON.stringify(at(pod, 'metadata', 'managedFields'));
    expect(owned)
      .to.include('f:image')
      .and.to.not.match(/f:tolerations|f:labels|sidecar/);
  });

  it('accepts a scheduling gate from a webhook', async () => {
    await install(server().webhook('a'));
    server().answer('/a', () => patching([{ op: 'add', path: '/spec/schedulingGates', value: [GATE] }]));
    const pod = done(await post(generated));
    expect(objects(at(pod, 'status', 'conditions'))[0]).to.include({ type: 'PodScheduled', reason: 'SchedulingGated' });
  });

  const rounds: readonly (readonly [string, string, string, JsonObject, string])[] = [
    ['IfNeeded', 'Never', 'a sidecar', SIDECAR, '/a /b /a'],
    ['Never', 'Never', 'a sidecar', SIDECAR, '/a /b'],
    ['IfNeeded', 'IfNeeded', 'an annotation', ANNOTATION, '/a /b /a'],
  ];
  for (const [first, second, what, operation, expected] of rounds) {
    it(`calls ${expected} if /b adds ${what}, and they are called again ${first} and ${second}`, async () => {
      await install(
        server().webhook('a', { reinvocationPolicy: first }),
        server().webhook('b', { reinvocationPolicy: second }),
      );
      server().answer('/b', () => patching([operation]));
      server().answer('/a', (request) =>
        at(request, 'object', 'metadata', 'labels') ? { allowed: true } : patching([LABEL]),
      );
      const pod = done(await post(generated));
      const paths = server().calls.map(({ path }) => path);
      expect(paths.filter((path) => !path.startsWith('/ready')).join(' ')).to.equal(expected);
      const seen = server().requests('/a');
      expect(new Set(seen.map(({ uid }) => uid)).size).to.equal(seen.length);
      if (seen.length === 2) expect(at(seen[1], 'object', 'spec')).to.deep.equal(pod.spec);
    });
  }

  it('does not call a webhook again for its own change', async () => {
    await install(server().webhook('a', { reinvocationPolicy: 'IfNeeded' }), server().webhook('b'));
    server().answer('/a', () => patching([LABEL]));
    done(await post(generated));
    expect(server().requests('/a')).to.have.length(1);
  });

  it('refuses a pod to which a webhook adds a gate twice when it is called again', async () => {
    const settings = { reinvocationPolicy: 'IfNeeded', failurePolicy: 'Ignore' };
    await install(server().webhook('a', settings), server().webhook('b'));
    server().answer('/b', () => patching([SIDECAR]));
    server().answer('/a', (request) => {
      const present = at(request, 'object', 'spec', 'schedulingGates');
      const path = `/spec/schedulingGates${present ? '/-' : ''}`;
      return patching([{ op: 'add', path, value: present ? GATE : [GATE] }]);
    });
    expect(fieldErrors(await post(generated))[0]).to.include('Duplicate value');
  });

  const spared: readonly (readonly [string, JsonObject])[] = [
    ['its objectSelector', { objectSelector: { matchLabels: { wanted: 'yes' } } }],
    [
      'its namespaceSelector',
      {
        namespaceSelector: {
          matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'NotIn', values: [NAMESPACE] }],
        },
      },
    ],
    ['a matchCondition', { matchConditions: [NOT_IGNORED] }],
    ['its rules', { rules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['UPDATE'], resources: ['*'] }] }],
  ];
  for (const [what, settings] of spared) {
    it(`does not call a webhook if ${what} excludes the pod`, async () => {
      await install(server().webhook('a', settings), server().webhook('b'));
      done(await post({ ...generated, labels: { [IGNORE_LABEL]: 'true' } }));
      expect(
        server()
          .calls.map(({ path }) => path)
          .slice(-1),
      ).to.deep.equal(['/b']);
      expect(server().requests('/a')).to.deep.equal([]);
    });
  }

  it('calls a webhook for a name that is taken, but not if the service account does not exist', async () => {
    await install(server().webhook('a'));
    done(await post({ name: 'taken' }));
    expect((await post({ name: 'taken' })).status).to.equal(409);
    expect((await post(generated, { serviceAccountName: 'nobody' })).status).to.equal(403);
    expect(server().requests('/a')).to.have.length(2);
  });

  it('finds a webhook behind a Service with an external name, whose certificate is for the Service', async () => {
    const services = `/api/v1/namespaces/${NAMESPACE}/services`;
    const external = { metadata: { name: SERVICE }, spec: { type: 'ExternalName', externalName: 'localhost' } };
    done(await context().client.request('POST', services, external));
    const service = { name: SERVICE, namespace: NAMESPACE, path: '/a', port: server().port };
    await install(server().webhook('a', { clientConfig: { service } }));
    done(await post(generated));
    expect(server().requests('/a')).to.have.length(1);
  });

  it('calls no webhook whose configuration was deleted', async () => {
    await install(server().webhook('a'));
    await remove();
    done(await post(generated));
    expect(server().requests('/a')).to.deep.equal([]);
  });
}
