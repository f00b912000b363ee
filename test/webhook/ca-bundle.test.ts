import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import type { ApiClient } from '../../src/kube/client.ts';
import { isObject, type JsonObject, listAt, objectAt, stringAt } from '../../src/placement/json.ts';
import type { Operation } from '../../src/placement/patch.ts';
import { caBundlePatch, servingNames, trusts } from '../../src/webhook/ca-bundle.ts';
import { keepCaBundle } from '../../src/webhook/keep-ca-bundle.ts';
import { type Server, startServer } from '../kube/cluster.ts';
import { CONFIGURATION, CONFIGURATIONS, createWorld, type World, webhookConfiguration } from './self-made.ts';

const one = createAuthority('one').certificate;
const two = createAuthority('two').certificate;
const service = { name: 'hook', namespace: 'ours' };
const OURS = ['localhost'];
const IPS = ['127.0.0.1', '::1'];

/** A configuration whose webhooks are called like this. */
function configurationOf(...clients: (JsonObject | undefined)[]): JsonObject {
  const webhooks = clients.map((clientConfig, index) => ({
    name: `${index}.example.com`,
    ...(clientConfig && { clientConfig }),
  }));
  return { metadata: { name: 'archaware-controller', uid: 'u' }, webhooks };
}
const withBundle = (text: string): JsonObject => ({ service, caBundle: btoa(text) });

describe('the bundle that callers trust', () => {
  const uid: Operation = { op: 'test', path: '/metadata/uid', value: 'u' };
  const given = (index: number, ca: string): Operation[] => [
    { op: 'test', path: `/webhooks/${index}/name`, value: `${index}.example.com` },
    { op: 'add', path: `/webhooks/${index}/clientConfig/caBundle`, value: btoa(ca) },
  ];
  const rows: [what: string, configuration: JsonObject, ca: string, patch: Operation[]][] = [
    ['is put where there is none', configurationOf({ service }), one, [uid, ...given(0, one)]],
    ['is put where there is an empty one', configurationOf({ service, caBundle: '' }), one, [uid, ...given(0, one)]],
    ['takes the place of another', configurationOf(withBundle(two)), one, [uid, ...given(0, one)]],
    ['takes the place of what is none', configurationOf(withBundle('hello')), one, [uid, ...given(0, one)]],
    ['takes the place of a part of it', configurationOf(withBundle(one)), one + two, [uid, ...given(0, one + two)]],
    ['stays', configurationOf(withBundle(one)), one, []],
    ['stays with others, in whatever order', configurationOf(withBundle(two + one)), one, []],
    ['stays, however its lines end', configurationOf(withBundle(one.replaceAll('\n', '\r\n'))), one, []],
    [
      'is put into every webhook that lacks it, by its place',
      configurationOf(withBundle(one), undefined, { url: 'https://example.com' }, withBundle(two)),
      one,
      [uid, ...given(2, one), ...given(3, one)],
    ],
    ['needs webhooks', { metadata: { uid: 'u' }, webhooks: 'none' }, one, []],
  ];
  for (const [what, configuration, ca, patch] of rows) {
    it(what, () => expect(caBundlePatch(configuration, ca)).to.deep.equal(patch));
  }

  it('is trusted where every webhook has it, or where there is none', () => {
    expect(trusts(configurationOf(withBundle(one), withBundle(two + one)), one)).to.equal(true);
    expect(trusts(configurationOf(withBundle(one), withBundle(two)), one)).to.equal(false);
    expect(trusts(undefined, one)).to.equal(true);
  });
});

describe('the names that are served', () => {
  const defaults = ['svc', 'svc.cluster.local'].map((end) => `archaware-controller.archaware.${end}`);
  const ofService = ['hook.ours.svc', 'hook.ours.svc.cluster.local', 'hook.ours'];
  const rows: [what: string, configuration: JsonObject | undefined, dns: string[], ips: string[]][] = [
    ['our Service without a configuration', undefined, [...defaults, 'archaware-controller.archaware'], []],
    ['our Service without webhooks', configurationOf(), [...defaults, 'archaware-controller.archaware'], []],
    ['the Service of a webhook', configurationOf({ service }), ofService, []],
    ['each Service once', configurationOf({ service }, { service }), ofService, []],
    ['the host of an URL', configurationOf({ url: 'https://Hook.example.com:1/x' }), ['hook.example.com'], []],
    ['the IPv4 address of an URL', configurationOf({ url: 'https://192.0.2.1:1/x' }), [], ['192.0.2.1']],
    ['the IPv6 address of an URL', configurationOf({ url: 'https://[2001:db8::1]/x' }), [], ['2001:db8::1']],
    ['this machine, called as such', configurationOf({ url: 'https://localhost:9443/mutate' }), [], []],
    ['nothing of an URL that is none', configurationOf({ service }, { url: 'hook' }), ofService, []],
    ['no name that a certificate cannot hold', configurationOf({ service }, { url: 'https://a!b/' }), ofService, []],
  ];
  for (const [what, configuration, dns, ips] of rows) {
    it(`are those of ${what}`, () => {
      const names = servingNames(configuration, 'archaware');
      expect(names.dns).to.have.members([...dns, ...OURS]);
      expect(names.ips).to.have.members([...ips, ...IPS]);
    });
  }
});

describe('the configuration of the webhook', () => {
  let server: Server;
  let client: ApiClient;
  let world: World;
  let problems: string[];
  beforeEach(async () => {
    server = await startServer();
    client = server.client;
    world = createWorld(client, 0);
    problems = [];
  });
  afterEach(async () => {
    await world.end();
    await server.stop();
  });

  const keep = (ca: string | undefined, mayWrite = () => true) =>
    world.add((signal) =>
      keepCaBundle({
        client,
        source: { current: () => ({ cert: '', key: '', ca, notAfter: 0 }), onChange: () => {} },
        mayWrite,
        clock: world.clock,
        onProblem: (problem) => problems.push(problem ?? 'none'),
        signal,
      }),
    );
  const bundle = async () => {
    const found = await client.request('get', CONFIGURATION);
    const [webhook] = listAt(isObject(found) ? found : {}, 'webhooks') ?? [];
    return atob(stringAt(objectAt(webhook ?? {}, 'clientConfig'), 'caBundle') ?? '');
  };
  const create = (metadata: JsonObject = {}) => {
    const body = webhookConfiguration();
    return client.request('create', CONFIGURATIONS, {
      body: { ...body, metadata: { ...objectAt(body, 'metadata'), ...metadata } },
    });
  };
  const patches = () => server.asked(CONFIGURATION).filter((request) => request.startsWith('PATCH'));

  it('gets the bundle at once, once, and again when somebody takes it away', async () => {
    await create();
    await keep(one);
    expect(await bundle()).to.equal(one);
    await world.pass(5000);
    expect(patches()).to.have.length(1);
    const remove = [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }];
    await client.request('patch', CONFIGURATION, { body: remove, contentType: 'application/json-patch+json' });
    await world.pass(5000);
    expect(await bundle()).to.equal(one);
    expect(problems).to.deep.equal([]);
  });

  it('is missed once, until it is there', async () => {
    await keep(one);
    await world.pass(5000);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain('no MutatingWebhookConfiguration archaware-controller');
    await create();
    await world.pass(5000);
    expect(problems.slice(1)).to.deep.equal(['none']);
    expect(await bundle()).to.equal(one);
  });

  it('is written by the leader alone, and the others do not even look', async () => {
    await create();
    let leads = false;
    await keep(one, () => leads);
    await world.pass(5000);
    expect(server.asked(CONFIGURATION)).to.deep.equal([]);
    leads = true;
    await world.pass(5000);
    expect(await bundle()).to.equal(one);
  });

  it('stays as it is where the source knows no bundle', async () => {
    await create();
    await keep(undefined);
    expect(await bundle()).to.equal('');
    expect(problems).to.deep.equal([]);
  });

  it('is left to cert-manager where that was asked to fill it in; that it does not is said', async () => {
    await create({ annotations: { 'cert-manager.io/inject-ca-from': 'archaware/webhook' } });
    await keep(one);
    for (let looks = 0; looks < 10; looks += 1) await world.pass(5000);
    expect(problems).to.deep.equal([]);
    await world.pass(5000);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain('cert-manager');
    expect(patches()).to.deep.equal([]);
  });

  it('that may not be read is a problem when it lasts', async () => {
    const denied: ApiClient = { ...client, request: () => Promise.reject(new Error('forbidden')) };
    client = denied;
    await keep(one);
    await world.pass(5000);
    expect(problems).to.deep.equal([]);
    await world.pass(5000);
    expect(problems).to.deep.equal(['the caBundle of archaware-controller cannot be kept: forbidden']);
  });
});
