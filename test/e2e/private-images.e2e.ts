import { expect } from 'chai';
import { at } from '../../hack/cluster/json.ts';
import { type Registry, startRegistry } from '../../hack/cluster/registry.ts';
import { TESTIMG_REPOSITORY } from '../../testimg/fixtures.ts';
import { ours, runs, tolerations } from '../support/objects.ts';
import type { RunningController } from '../support/running.ts';
import { daemonSet, pod } from '../support/workloads.ts';
import { base64 } from './support/places.ts';
import { worldForAll } from './support/world.ts';

const ROWS = [
  { name: 'basic', options: { htpasswd: true }, form: 'dockerconfigjson' },
  { name: 'bearer', options: { tokenAuth: true }, form: 'dockercfg' },
] as const;

describe('private images on the real control plane', () => {
  const world = worldForAll();
  let controller: RunningController;
  const image = ({ host }: Registry, tag: string) => `${host}/${TESTIMG_REPOSITORY}:${tag}`;

  for (const { name, options, form } of ROWS) {
    describe(`of a registry that asks for ${name} credentials, which a Secret of the type ${form} has`, () => {
      let registry: Registry;
      let namespace: string;

      before(async () => {
        registry = await startRegistry(options);
        world.atEnd(registry.remove);
        await world.fill(registry);
        await world.stopControllers();
        controller = await world.run(['--images.fallbackAfter', '1h', '--images.cache.failureTtl', '1s']);
        namespace = await world.namespace(name);
        const { username, password } = registry.account;
        const logins = { [registry.host]: { auth: base64(`${username}:${password}`) } };
        const content = JSON.stringify(form === 'dockercfg' ? logins : { auths: logins });
        const metadata = { name: 'pull', namespace };
        const data = { [`.${form}`]: base64(content) };
        await world.create({ apiVersion: 'v1', kind: 'Secret', metadata, type: `kubernetes.io/${form}`, data });
      });

      it('are read with it, an index and a single manifest, whose configuration is a blob', async () => {
        await world.create(
          pod(namespace, 'index', { images: [image(registry, 'multi')], pullSecrets: ['pull'] }),
          pod(namespace, 'single', { images: [image(registry, 'arm64')], pullSecrets: ['pull'] }),
        );
        await world.eventuallyTolerates(namespace, 'index', ours('amd64', 'arm64'));
        await world.eventuallyTolerates(namespace, 'single', ours('arm64'));
        await world.eventually('both to run', async () => (await world.list('Pod', namespace)).every(runs));
      });

      it('are not given to a pod without it, although another pod found them out', async () => {
        await world.create(pod(namespace, 'without', { images: [image(registry, 'multi')] }));
        const note = await world.eventuallyEvent(namespace, 'ImageUnresolvable', /\(denied\)/);
        expect(note).to.include(image(registry, 'multi')).and.to.not.include(registry.account.password);
        expect(tolerations(await world.get('Pod', namespace, 'without'))).to.deep.equal([]);
      });

      it("are read for a DaemonSet's template with the secrets of its service account", async () => {
        await world.patch('ServiceAccount', namespace, 'default', { imagePullSecrets: [{ name: 'pull' }] });
        await world.create(daemonSet(namespace, 'agent', { images: [image(registry, 'attestations')] }));
        await world.eventually('the template to tolerate both', async () => {
          const template = at(await world.get('DaemonSet', namespace, 'agent'), 'spec', 'template');
          return tolerations(template).join() === ours('amd64', 'arm64').join();
        });
        await world.eventuallyAllRun(namespace, 'agent', 2);
      });

      it('leave no trace of the password in the log', () => {
        const { username, password } = registry.account;
        const log = controller.logs().join('\n');
        expect(log)
          .to.not.include(password)
          .and.to.not.include(base64(`${username}:${password}`));
      });
    });
  }
});
