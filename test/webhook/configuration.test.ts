import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { type JsonObject, objectAt } from '../../src/kit/json.ts';
import type { Operation } from '../../src/kit/json-patch.ts';
import type { ApiClient } from '../../src/kube/api-client.ts';
import { calledPaths, configurationPatch, servingNames, trusts } from '../../src/webhook/configuration.ts';
import { readConfiguration } from '../../src/webhook/keep-configuration.ts';
import { createPaths } from '../../src/webhook/paths.ts';
import { type Server, startServer } from '../kube/cluster.ts';
import {
  bundleIn,
  CONFIGURATION,
  CONFIGURATIONS,
  createWorld,
  keeping,
  type World,
  webhookConfiguration,
} from './self-made.ts';

const one = createAuthority('one').certificate;
const two = createAuthority('two').certificate;
const service = { name: 'hook', namespace: 'ours' };
const OURS = ['localhost'];
const IPS = ['127.0.0.1', '::1'];

/** A configuration whose webhooks have these client configurations. */
function configurationOf(...clients: (JsonObject | undefined)[]): JsonObject {
  const webhooks = clients.map((clientConfig, index) => ({
    name: `${index}.example.com`,
    ...(clientConfig && { clientConfig }),
  }));
  return { metadata: { name: 'archaware-controller', uid: 'u' }, webhooks };
}
const withBundle = (text: string): JsonObject => ({ service, caBundle: btoa(text) });

const uid: Operation = { op: 'test', path: '/metadata/uid', value: 'u' };
const named = (index: number): Operation => ({
  op: 'test',
  path: `/webhooks/${index}/name`,
  value: `${index}.example.com`,
});
const to = (index: number, field: string, value: string): Operation => ({
  op: 'add',
  path: `/webhooks/${index}/clientConfig/${field}`,
  value,
});

describe('the bundle that callers trust', () => {
  const given = (index: number, ca: string): Operation[] => [named(index), to(index, 'caBundle', btoa(ca))];
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
    it(what, () => expect(configurationPatch(configuration, { ca })).to.deep.equal(patch));
  }

  it('is trusted if every webhook has it, or if there is no configuration', () => {
    expect(trusts(configurationOf(withBundle(one), withBundle(two + one)), one)).to.equal(true);
    expect(trusts(configurationOf(withBundle(one), withBundle(two)), one)).to.equal(false);
    expect(trusts(undefined, one)).to.equal(true);
  });
});

describe('the path that callers use', () => {
  const path = '/mutate/abc';
  const at = (of: string): JsonObject => ({ service: { ...service, path: of } });
  const [NAMED, NUMBERED] = ['https://Hook.example.com:443', 'https://[2001:db8::1]:9443'];
  const given = (index: number, field: string, value: string) => [uid, named(index), to(index, field, value)];
  const rows: [what: string, clients: JsonObject[], patch: Operation[], called: string[]][] = [
    ['a Service without one', [{ service }], given(0, 'service/path', path), ['/']],
    ['a Service with another', [at('/mutate')], given(0, 'service/path', path), ['/mutate']],
    ['a Service with it', [at(path)], [], [path]],
    ['a URL, whose host and port stay', [{ url: `${NAMED}/mutate` }], given(0, 'url', NAMED + path), ['/mutate']],
    ['a URL without one', [{ url: NUMBERED }], given(0, 'url', NUMBERED + path), ['/']],
    ['a URL with it', [{ url: `https://hook${path}` }], [], [path]],
    ['nothing that can be called', [{}], [], ['/']],
    ['each that lacks it', [at(path), { service }], given(1, 'service/path', path), [path, '/']],
  ];
  for (const [what, clients, patch, called] of rows) {
    it(`is put into ${what}`, () => {
      expect(configurationPatch(configurationOf(...clients), { path })).to.deep.equal(patch);
      expect(calledPaths(configurationOf(...clients))).to.deep.equal(called);
    });
  }

  it('comes in one patch with the bundle', () => {
    const patch = [...given(0, 'service/path', path), to(0, 'caBundle', btoa(one))];
    expect(configurationPatch(configurationOf({ service }), { ca: one, path })).to.deep.equal(patch);
  });
});

describe('the names in the certificate', () => {
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

  const ours = createAuthority('three').issue('hook', ['archaware-controller.archaware.svc']).certificate;
  const keep = (ca: string | undefined, more: Partial<Parameters<typeof keeping>[0]> = {}) =>
    world.add((signal) =>
      keeping({
        client,
        source: sourceOf(ours, ca),
        mayWrite: () => true,
        clock: world.clock,
        onProblem: (problem) => problems.push(problem ?? 'none'),
        signal,
        ...more,
      }),
    );
  const sourceOf = (cert: string, ca: string | undefined) => ({
    current: () => ({ cert, key: '', ca, notAfter: 0 }),
    onChange: () => {},
  });
  const bundle = () => bundleIn(client);
  const create = (metadata: JsonObject = {}) => {
    const body = webhookConfiguration();
    return client.request('create', CONFIGURATIONS, {
      body: { ...body, metadata: { ...objectAt(body, 'metadata'), ...metadata } },
    });
  };
  const patches = () => server.asked(CONFIGURATION).filter((request) => request.startsWith('PATCH'));

  it('gets the bundle at once, once, and again when somebody removes it', async () => {
    await create();
    await keep(one);
    expect(await bundle()).to.equal(one);
    await world.pass(5000);
    expect(patches()).to.have.length(1);
    const remove = [{ op: 'remove', path: '/webhooks/0/clientConfig/caBundle' }];
    await client.request('patch', CONFIGURATION, { body: remove });
    await world.pass(5000);
    expect(await bundle()).to.equal(one);
    expect(problems).to.deep.equal([]);
  });

  it('is reported as missing once, until it is there', async () => {
    await keep(one);
    await world.pass(5000);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain('MutatingWebhookConfiguration archaware-controller not found');
    await create();
    await world.pass(5000);
    expect(problems.slice(1)).to.deep.equal(['none']);
    expect(await bundle()).to.equal(one);
  });

  it('is not said to be right by a replica that no longer leads, as at its end', async () => {
    let leads = true;
    await keep(one, { mayWrite: () => leads });
    leads = false;
    await world.pass(5000);
    expect(problems).to.have.length(1);
  });

  it('is written by the leader only', async () => {
    await create();
    let leads = false;
    await keep(one, { mayWrite: () => leads });
    await world.pass(5000);
    expect(patches()).to.deep.equal([]);
    leads = true;
    await world.pass(5000);
    expect(await bundle()).to.equal(one);
  });

  it('is not changed if the source has no bundle', async () => {
    await create();
    await keep(undefined);
    expect(await bundle()).to.equal('');
    expect(problems).to.deep.equal([]);
  });

  it('is left to cert-manager if that should fill it in, and its failure is reported', async () => {
    await create({ annotations: { 'cert-manager.io/inject-ca-from': 'archaware/webhook' } });
    await keep(one);
    for (let looks = 0; looks < 10; looks += 1) await world.pass(5000);
    expect(problems).to.deep.equal([]);
    await world.pass(5000);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain('cert-manager');
    expect(patches()).to.deep.equal([]);
  });

  it('is reported as a problem if the certificate is for other names for some time', async () => {
    await create();
    let cert = createAuthority('three').issue('archaware-controller.archaware.svc', ['hook.archaware.svc']).certificate;
    await keep(one, { source: { ...sourceOf(ours, one), current: () => sourceOf(cert, one).current() } });
    await world.pass(5000);
    expect(problems).to.deep.equal([]);
    await world.pass(5000);
    expect(problems).to.have.length(1);
    expect(problems[0]).to.contain(
      'tls.crt lacks the name by which the API server calls the webhook: archaware-controller.archaware.svc',
    );
    cert = ours;
    await world.pass(5000);
    expect(problems.slice(1)).to.deep.equal(['none']);
  });

  it('is reported as a problem if it cannot be read for some time', async () => {
    const denied: ApiClient = { ...client, request: () => Promise.reject(new Error('forbidden')) };
    client = denied;
    await keep(one);
    await world.pass(5000);
    expect(problems).to.deep.equal([]);
    await world.pass(5000);
    expect(problems).to.deep.equal(['caBundle and path of archaware-controller cannot be updated: forbidden']);
  });

  describe('and its path', () => {
    const SECRET_PATH = '/mutate/abc';
    let wanted: string | undefined;
    let pathProblems: string[];
    beforeEach(() => {
      wanted = SECRET_PATH;
      pathProblems = [];
    });

    const serve = async () => {
      const paths = createPaths(() => wanted, world.clock.monotonic);
      await keep(one, { paths, onPathProblem: (problem) => pathProblems.push(problem ?? 'none') });
      return paths;
    };
    const called = async () => calledPaths(await readConfiguration(client));
    const name = (path: string, caBundle?: string) =>
      client.request('patch', CONFIGURATION, {
        body: [
          { op: 'add', path: '/webhooks/0/clientConfig/service/path', value: path },
          ...(caBundle === undefined
            ? []
            : [{ op: 'add', path: '/webhooks/0/clientConfig/caBundle', value: btoa(caBundle) }]),
        ],
      });
    const pass = async (times: number) => {
      for (let looks = 0; looks < times; looks += 1) await world.pass(5000);
    };

    it('are written in one patch if nobody calls yet, and restored when somebody changes them', async () => {
      await create();
      await serve();
      expect([await bundle(), await called()]).to.deep.equal([one, [SECRET_PATH]]);
      expect(patches()).to.have.length(1);
      await name('/elsewhere', '');
      await pass(1);
      expect([await bundle(), await called()]).to.deep.equal([one, [SECRET_PATH]]);
      expect(problems.concat(pathProblems)).to.deep.equal([]);
    });

    it('are replaced at once; what was called before is answered until every API server has noticed', async () => {
      await create();
      await name('/elsewhere', one);
      const paths = await serve();
      expect(await called()).to.deep.equal([SECRET_PATH]);
      expect(['/elsewhere', SECRET_PATH].map(paths.isServed)).to.deep.equal([true, true]);
      await pass(1);
      expect(paths.isServed('/elsewhere'), 'while some API server may still call it').to.equal(true);
      await pass(13);
      expect(['/elsewhere', '/', SECRET_PATH].map(paths.isServed)).to.deep.equal([false, false, true]);
    });

    it('are reported as a problem if there is no path for some time, and every path of callers is served', async () => {
      await create();
      wanted = undefined;
      const paths = await serve();
      expect([await bundle(), await called()]).to.deep.equal([one, ['/']]);
      await pass(12);
      expect(pathProblems).to.have.length(1);
      expect(pathProblems[0]).to.match(/the webhook has no secret path, .* set webhook.path/);
      await name('/mutate');
      await pass(1);
      expect(['/mutate', '/', '/other'].map(paths.isServed)).to.deep.equal([true, true, false]);
    });
  });
});
