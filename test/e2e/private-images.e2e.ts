import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { ours, runs, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, type KubernetesObject, pod } from '../support/workloads.ts';
import { worldForAll } from './support/world.ts';

const FORMS = [
  { form: 'dockerconfigjson', type: 'kubernetes.io/dockerconfigjson', key: '.dockerconfigjson' },
  { form: 'dockercfg', type: 'kubernetes.io/dockercfg', key: '.dockercfg' },
] as const;

const base64 = (text: string) => Buffer.from(text).toString('base64');

function pullSecret(namespace: string, form: (typeof FORMS)[number], registry: Registry): KubernetesObject {
  const { username, password } = registry.account;
  const logins = { [registry.host]: { auth: base64(`${username}:${password}`) } };
  const content = form.form === 'dockercfg' ? logins : { auths: logins };
  const data = { [form.key]: base64(JSON.stringify(content)) };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: form.form, namespace }, type: form.type, data };
}

describe('private images on the real control plane', () => {
  const world = worldForAll();
  let controller: RunningController;
  const registries = new Map<string, Registry>();

  before(async () => {
    for (const [name, options] of Object.entries({ basic: { htpasswd: true }, bearer: { tokenAuth: true } })) {
      const registry = await startRegistry(options);
      registries.set(name, registry);
      world.atEnd(registry.remove);
      await world.fill(registry);
    }
    controller = await world.run(['--images.fallbackAfter', '1h', '--images.cache.failureTtl', '1s']);
  });

  function registryOf(name: string): Registry {
    const found = registries.get(name);
    if (found === undefined) throw new Error(`no registry ${name}`);
    return found;
  }
  const image = (registry: Registry, tag: string) => `${registry.host}/${TESTIMG_REPOSITORY}:${tag}`;

  for (const name of ['basic', 'bearer']) {
    for (const form of FORMS) {
      it(`are read with a pull secret of type ${form.form} where the registry asks for ${name} credentials`, async () => {
        const registry = registryOf(name);
        const namespace = await world.namespace(`${name}-${form.form}`);
        await world.create(pullSecret(namespace, form, registry));
        // An index and a single manifest, whose configuration is a blob.
        await world.create(
          pod(namespace, 'index', { images: [image(registry, 'multi')], pullSecrets: [form.form] }),
          pod(namespace, 'single', { images: [image(registry, 'arm64')], pullSecrets: [form.form] }),
        );
        await world.eventuallyTolerates(namespace, 'index', ours('amd64', 'arm64'));
        await world.eventuallyTolerates(namespace, 'single', ours('arm64'));
        await world.eventually('both to run', async () => (await world.list('Pod', namespace)).every(runs));
      });
    }

    it(`are not given to a pod without a secret, although another pod found them out (${name})`, async () => {
      const namespace = await world.namespace(`${name}-without`);
      await world.create(pod(namespace, 'without', { images: [image(registryOf(name), 'multi')] }));
      const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /\(denied\)/);
      expect(note)
        .to.include(image(registryOf(name), 'multi'))
        .and.to.not.include(registryOf(name).account.password);
      expect(tolerations(await world.get('Pod', namespace, 'without'))).to.deep.equal([]);
    });
  }

  it("are read for a DaemonSet's template with the secrets of its service account", async () => {
    const registry = registryOf('basic');
    const namespace = await world.namespace('by-account');
    await world.create(pullSecret(namespace, FORMS[0], registry));
    await world.patch('ServiceAccount', namespace, 'default', { imagePullSecrets: [{ name: 'dockerconfigjson' }] });
    await world.create(daemonSet(namespace, 'agent', { images: [image(registry, 'attestations')] }));
    await world.eventually('the template to tolerate both', async () => {
      const template = at(await world.get('DaemonSet', namespace, 'agent'), 'spec', 'template');
      return tolerations(template).join() === ours('amd64', 'arm64').join();
    });
    await world.eventuallyAllRun(namespace, 'agent', 2);
  });

  it('leave no trace of a password in the log', () => {
    const log = controller.logs().join('\n');
    const { username, password } = registryOf('basic').account;
    expect(log)
      .to.not.include(password)
      .and.to.not.include(base64(`${username}:${password}`));
  });
});
