import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import type { Component } from '../../hack/cluster/spawn.ts';
import { streamPods } from '../e2e/support/pod-stream.ts';
import { passedUnreviewed, reviewsPods } from '../e2e/support/real-checks.ts';
import { editConfiguration, realWorldForAll } from '../e2e/support/real-world.ts';
import { isGoing, nameOf } from '../support/objects.ts';
import { bundlesOf, isTrusted, WEBHOOKS } from '../support/webhook.ts';
import { startCertManager } from './support/cert-manager.ts';

const NAME = 'archaware-controller';
const SECRET = `${NAME}-certificates`;
const CERTIFICATES = '/apis/cert-manager.io/v1/namespaces/archaware/certificates';
const PODS_PER_SECOND = 5;
/** Says with which certificate an address serves: prints its serial number. */
const ASK = `const [host, port] = process.argv.slice(1);
const socket = require('node:tls').connect({ host, port, rejectUnauthorized: false }, () => {
  process.stdout.write(socket.getPeerX509Certificate().serialNumber);
  socket.end();
});`;

/** In this order: each step goes on with what the one before has left. */
describe('archaware beside cert-manager, on a real node', function () {
  this.timeout(300_000);
  const ns = 'shop';
  const { real, world } = realWorldForAll();
  let certManager: Component;

  before(async () => {
    certManager = await startCertManager(world.cluster);
    await world.namespace(ns);
  });
  after(() => certManager?.stop());
  afterEach(async function () {
    if (this.currentTest?.state !== 'failed') return;
    const logs = ['-n', 'archaware', 'logs', '-l', `app.kubernetes.io/name=${NAME}`, '--tail=20', '--prefix'];
    const kinds = 'pods,secrets,certificates,issuers,certificaterequests';
    for (const args of [['get', kinds, '-A', '-o', 'wide'], ['get', 'events', '-A'], logs]) {
      const { stdout, stderr } = await world.cluster.kubectl(args);
      console.log(stdout.split('\n').slice(-40).join('\n') + stderr);
    }
    const log = await readFile(join(world.cluster.directory, 'cert-manager.log'), 'utf8');
    console.log(log.split('\n').slice(-20).join('\n'));
  });

  const eventually = <T>(what: string, condition: () => Promise<T | false | undefined>) =>
    world.cluster.waitFor(what, condition, 180_000);
  const replicas = async () => (await world.list('Pod', 'archaware')).filter((one) => !isGoing(one));
  /** The serial numbers with which the replicas serve. */
  const served = async () => {
    const addresses = (await replicas()).map((one) => String(at(one, 'status', 'podIP')));
    return Promise.all(addresses.map((address) => real.node.run(process.execPath, '-e', ASK, address, '9443')));
  };
  const revision = async () => Number(at(await world.get(`${CERTIFICATES}/${NAME}`), 'status', 'revision'));

  /** Its injector adds to a bundle what is new, and leaves what was there. */
  const pem = (base64: unknown) => Buffer.from(String(base64), 'base64').toString();
  const currentAuthority = async () => pem(at(await world.get('Secret', 'archaware', SECRET), 'data', 'ca.crt')).trim();

  it('is installed with the overlay, as docs/install.md says', async () => {
    const { repository, digest } = await real.image();
    await real.block('docs/install.md', 'overlays/cert-manager]', {
      'registry.example.com/you/archaware-controller, newTag: 0.2.0': `${repository}, digest: "${digest}"`,
    });
    await editConfiguration(real, `registries: {insecure: ["${world.registry.nodeHost}"]}`);
    await real.kubectl('-n', 'archaware', 'wait', `certificate/${NAME}`, '--for=condition=Ready', '--timeout=60s');
  });

  it('is called by the API server, with the authority that cert-manager has injected', async () => {
    await eventually('every webhook to have a caBundle', () => isTrusted(world));
    await eventually('a new pod to be reviewed', () => reviewsPods(world, ns, world.image('index-both')));
  });

  it('is asked at the secret path alone', async () => {
    const hooks = listAt(await world.get(WEBHOOKS), 'webhooks');
    const paths = hooks.map((hook) => String(at(hook, 'clientConfig', 'service', 'path')));
    for (const path of paths) expect(path).to.match(/^\/mutate\/[0-9a-f]{40}$/);
    const logs = await real.kubectl('-n', 'archaware', 'logs', '-l', `app.kubernetes.io/name=${NAME}`, '--tail=-1');
    expect(logs).not.to.match(/webhook[.]path/);
  });

  const WAYS: readonly (readonly [how: string, renew: () => Promise<unknown>])[] = [
    [
      'when it is asked to, as by cmctl renew',
      async () => {
        const certificate = await world.get(`${CERTIFICATES}/${NAME}`);
        const condition = {
          ...{ type: 'Issuing', status: 'True', reason: 'ManuallyTriggered', message: 'asked for' },
          lastTransitionTime: new Date().toISOString().replace(/[.]\d+/, ''),
        };
        const conditions = [...listAt(certificate, 'status', 'conditions'), condition];
        const patch = JSON.stringify({ status: { conditions } });
        const merge = ['--subresource=status', '--type=merge', '--patch', patch];
        return real.kubectl('-n', 'archaware', 'patch', 'certificate', NAME, ...merge);
      },
    ],
    ['when its Secret is deleted', () => real.kubectl('-n', 'archaware', 'delete', 'secret', SECRET)],
  ];
  for (const [how, renew] of WAYS) {
    it(`serves with a renewed certificate, ${how}: without a restart, and no pod passes unreviewed`, async () => {
      const [before, old, passed, uids] = await Promise.all([
        revision(),
        served(),
        passedUnreviewed(world),
        replicas().then((all) => all.map(nameOf)),
      ]);
      const stream = streamPods(world, ns, world.image('index-both'), PODS_PER_SECOND);
      try {
        await renew();
        await eventually('cert-manager to renew it', async () => (await revision()) !== before);
        const begun = performance.now();
        const seconds = () => ((performance.now() - begun) / 1000).toFixed(1);
        const trusted = eventually('every webhook to have its authority', async () => {
          const authority = await currentAuthority();
          return (await bundlesOf(world)).every((bundle) => pem(bundle).includes(authority));
        }).then(() => console.log(`        trusted after ${seconds()} s`));
        await eventually('all replicas to serve with the new one', async () => {
          const now = await served();
          return now.length === old.length && now.every((serial) => !old.includes(serial)) && new Set(now).size === 1;
        });
        console.log(`        served after ${seconds()} s`);
        await trusted;
      } finally {
        const { created, unreviewed } = await stream.stop();
        console.log(`        ${created} pods, ${unreviewed.length} unreviewed`);
        expect(unreviewed).to.deep.equal([]);
      }
      expect((await passedUnreviewed(world)).slice(passed.length)).to.deep.equal([]);
      const now = await replicas();
      expect(now.map(nameOf)).to.have.members(uids);
      expect(now.map((one) => at(one, 'status', 'containerStatuses', 0, 'restartCount'))).to.deep.equal(
        now.map(() => 0),
      );
    });
  }

  it('is taken away by clean and kubectl delete, and nothing is left', async () => {
    await real.script('node dist/main.js clean --stop --yes && kubectl delete --ignore-not-found -k mine');
    expect((await world.cluster.request('GET', WEBHOOKS)).status).to.equal(404);
    const nodes = await world.list('Node', '');
    expect(JSON.stringify(nodes)).not.to.match(/archaware[.]dev|supported-arch/);
  });
});
