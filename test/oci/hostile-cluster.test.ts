import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import { type HostileServer, says, sends, startHostileServer } from '../support/hostile-registry.ts';
import { BODY, manifest, putSingle } from '../support/hostile-world.ts';
import { ours } from '../support/objects.ts';
import { PODS, type Product, startProduct } from '../support/product.ts';
import { IMAGE, indexOf, sha256 } from './server.ts';

const EVIL = '\u001b[2J\u001b]0;owned\u0007\r\n{"level":"fatal","msg":"owned"}\u202e\u0000\u009b31m';

describe('a controller with images of a hostile registry', () => {
  let product: Product;
  let evil: HostileServer;
  let canary: HostileServer;
  beforeEach(async () => {
    product = await startProduct();
    evil = await startHostileServer();
    canary = await startHostileServer();
  });
  afterEach(() => Promise.all([product.stop(), evil.stop(), canary.stop()]));

  /** An index that names a platform of the hostile registry's choice, and others. */
  function strange(...others: string[]): unknown {
    const index = indexOf(...others);
    for (const platform of [
      { os: 'linux', architecture: EVIL },
      { os: EVIL, architecture: 'arm64' },
      { os: 'linux', architecture: 'arm64-' },
      { os: 'linux', architecture: 'supported-arch=arm64' },
      { os: 'linux', architecture: '' },
    ]) {
      index.manifests.push({ mediaType: IMAGE, digest: sha256(JSON.stringify(platform)), platform });
    }
    index.manifests.push({ mediaType: EVIL, artifactType: EVIL, digest: sha256('x'), annotations: { [EVIL]: EVIL } });
    return index;
  }

  /** Images by name, and the expected result of their lookup. */
  function images(): Readonly<Record<string, RegExp>> {
    const on = (name: string, speak: Parameters<HostileServer['on']>[1]) => evil.on(`/v2/${name}/manifests/v1`, speak);
    on('platforms', manifest(strange()));
    on(
      'artifact',
      manifest({ schemaVersion: 2, artifactType: EVIL, config: { digest: sha256('x') }, layers: [] }, IMAGE),
    );
    on('page', says(200, [['Content-Type', `text/html; ${BODY}`]], `${BODY}${EVIL}`));
    on('refusal', says(403, [['X-Reason', BODY]], `{"errors":[{"message":"${BODY}"}]}`));
    on('redirect', says(302, [['Location', `http://127.0.0.1:${canary.port}/${BODY}`]]));
    on('nonsense', sends(`HTTP/1.1 200 ${BODY}\r\n${BODY}\0\r\n\r\n`));
    putSingle(evil, 'single', { os: EVIL, architecture: EVIL });
    return {
      platforms: /unsupported/,
      artifact: /unsupported/,
      page: /malformed/,
      refusal: /denied/,
      redirect: /forbidden-address/,
      nonsense: /malformed/,
      single: /unsupported/,
    };
  }

  const host = () => `127.0.0.1:${evil.port}`;

  it('gives pods only plausible architectures, and reports the rest in printable words without repeating it', async () => {
    const failing = images();
    evil.on('/v2/believed/manifests/v1', manifest(strange('linux/amd64')));
    for (const name of [...Object.keys(failing), 'believed']) {
      await product.cluster.createPod({ name, images: [`${host()}/${name}:v1`] });
    }
    const controller = await product.run(['--registries.insecure', host(), '--log.level', 'debug']);
    await product.eventuallyTolerates('default', 'believed', ours('amd64'));
    for (const [name, code] of Object.entries(failing)) {
      const told = await product.eventuallyEvent('default', 'ImageUnresolvable', new RegExp(`/${name}:v1 `));
      expect(told, name).to.match(code);
    }
    const events = await product.list('/apis/events.k8s.io/v1/namespaces/default/events');
    const notes = events.map(({ note }) => text(note));
    const logs = controller.logs();
    for (const line of [...notes, ...logs]) {
      expect(line).to.match(/^[\x20-\x7e]+$/);
      expect(line).to.not.include(BODY);
    }
    for (const line of logs)
      expect(at(JSON.parse(line), 'level'), line).to.be.oneOf(['debug', 'info', 'warn', 'error']);
    for (const pod of await product.list(PODS)) {
      for (const { value } of objects(at(pod, 'spec', 'tolerations')).filter(({ key }) => key === 'supported-arch')) {
        expect(value).to.equal('amd64');
      }
    }
    expect(canary.connections()).to.equal(0);
    expect(await controller.stop()).to.equal(0);
  });

  it('is inspected in printable words', async () => {
    const names = [...Object.keys(images()), 'believed'];
    evil.on('/v2/believed/manifests/v1', manifest(strange('linux/amd64')));
    const references = names.map((name) => `${host()}/${name}:v1`);
    for (const form of ['table', 'json', 'yaml']) {
      const { code, stdout, stderr } = await product.command([
        'inspect',
        ...references,
        '--output',
        form,
        '--registries.insecure',
        host(),
      ]);
      expect(code, stderr).to.equal(2);
      expect(stdout, form).to.include('amd64');
      expect(stdout + stderr, form).to.match(/^[\x20-\x7e\n]+$/);
      expect(stdout + stderr, form).to.not.include(BODY);
    }
    expect(canary.connections()).to.equal(0);
  });
});
