import { expect } from 'chai';
import { startTestRegistry, type TestRegistry } from '../../simulator/registry/registry.ts';
import { folderForEach } from '../../support/folder.ts';
import { ours } from '../../support/objects.ts';
import { type Product, startProduct } from '../../support/product.ts';

describe("the operator's settings for registries", () => {
  let product: Product;
  afterEach(() => product.stop());
  const { at: file, write } = folderForEach();
  const dockerConfig = (host: string, password: string) =>
    JSON.stringify({ auths: { [host]: { username: 'ops', password } } });

  it('place waiting pods as soon as a file of credentials is repaired, and keep the last good content of a broken file', async () => {
    product = await startProduct({ registry: { auth: 'basic', users: { ops: 'right horse' } } });
    const image = product.image('private', ['arm64']);
    await write({ 'config.json': dockerConfig(product.registry.host, 'wrong horse') });
    const controller = await product.run(['--credentials.dockerConfigFiles', file('config.json')]);
    await product.cluster.createPod({ name: 'waits', images: [image] });
    await product.eventuallyEvent('default', 'ImageUnresolvable', /401/);

    await write({ 'config.json': dockerConfig(product.registry.host, 'right horse') });
    await product.eventuallyTolerates('default', 'waits', ours('arm64'));

    await write({ 'config.json': '{"auths": ' });
    await product.eventually('the log to tell', async () =>
      controller.logs().some((line) => line.includes('credentials.dockerConfigFiles') && line.includes('"error"')),
    );
    const next = product.image('private-too', ['amd64']);
    await product.cluster.createPod({ name: 'later', images: [next] });
    await product.eventuallyTolerates('default', 'later', ours('amd64'));
    expect(controller.logs().join('\n')).not.to.contain('horse');
  });

  describe('of mirrors', () => {
    let mirror: TestRegistry;
    beforeEach(async () => {
      mirror = await startTestRegistry();
    });
    afterEach(() => mirror.stop());

    it('decide which registry is asked, and inspect names the one that answered', async () => {
      product = await startProduct();
      mirror.put('hub/library/nginx', 'latest', ['amd64', 'arm64']);
      const mirrors = { 'docker.io': { endpoints: [`http://${mirror.host}/hub`], fallback: false } };
      const flags = ['--registries.mirrors', JSON.stringify(mirrors)];
      const { code, stdout } = await product.command(['inspect', 'nginx', '--output', 'json', ...flags]);
      const [inspected] = JSON.parse(stdout);
      expect(code).to.equal(0);
      expect(inspected).to.deep.include({ image: 'nginx', source: `${mirror.host}/hub` });
      const table = await product.command(['inspect', 'nginx', ...flags]);
      expect(table.stdout).to.match(
        /IMAGE +PLATFORMS +SOURCE +DIGEST\nnginx +linux\/amd64 linux\/arm64 +127\.0\.0\.1:\d+\/hub /,
      );

      const controller = await product.run(flags);
      await product.cluster.createPod({ name: 'web', images: ['nginx'] });
      await product.eventuallyTolerates('default', 'web', ours('amd64', 'arm64'));
      const asked = await controller.metric('archaware_registry_requests_total', { registry: `${mirror.host}/hub` });
      expect(asked).to.equal(1);
    });
  });

  it('about images in overrides are shown by inspect, without a request', async () => {
    product = await startProduct();
    const image = product.image('legacy', ['arm64']);
    const overrides = [{ pattern: `${product.registry.host}/*`, architectures: ['amd64', 's390x'] }];
    const flags = ['--images.overrides', JSON.stringify(overrides)];
    const { code, stdout } = await product.command(['inspect', image, '--output', 'json', ...flags]);
    expect(code).to.equal(0);
    const platforms = ['amd64', 's390x'].map((architecture) => ({ os: 'linux', architecture }));
    expect(JSON.parse(stdout)).to.deep.equal([{ image, platforms, skipped: [] }]);
    expect(product.registry.requests()).to.deep.equal([]);
  });

  it('about mirrors are refused also by the commands that only check them', async () => {
    product = await startProduct();
    const mirrors = { 'docker.io': { endpoints: ['m.test'] }, 'index.docker.io': { endpoints: ['n.test'] } };
    await write({ 'config.yaml': JSON.stringify({ registries: { mirrors } }) });
    for (const command of [
      ['config', 'validate', file('config.yaml')],
      ['config', 'print', '--config', file('config.yaml')],
      ['inspect', 'nginx', '--config', file('config.yaml')],
    ]) {
      const { code, stderr, stdout } = await product.command(command);
      expect([code, stdout], `${command}`).to.deep.equal([3, '']);
      expect(stderr.trim()).to.match(/^[^\n]*registries\.mirrors\.\S+: [^\n]*another of its names[^\n]*$/);
      if (command[0] === 'config') expect(stderr).to.match(/config\.yaml:1\)/);
    }
    // The content of files is checked by the commands that read them.
    await write({ 'config.yaml': 'credentials: {directory: /nowhere}' });
    expect((await product.command(['config', 'validate', file('config.yaml')])).code).to.equal(0);
  });

  it('that cannot be read end every command that needs them, with one line', async () => {
    product = await startProduct();
    await write({ broken: 'x = [' });
    const rows: [key: string, value: string, expected: RegExp][] = [
      ['credentials.dockerConfigFiles', file('gone.json'), /ENOENT/],
      ['credentials.dockerConfigFiles', file('broken'), /JSON/],
      ['credentials.directory', file('gone'), /ENOENT/],
      ['registries.caFile', file('broken'), /PEM/],
      ['registries.containerdConfigDirectory', file('gone'), /ENOENT/],
      ['registries.containersRegistriesConf', file('gone'), /ENOENT/],
    ];
    const commands = [['inspect', 'nginx'], ['plan'], ['run', '--metrics.address', '']];
    for (const [index, [key, value, expected]] of rows.entries()) {
      for (const command of index === 0 ? commands : commands.slice(0, 1)) {
        const { code, stderr, stdout } = await product.command([...command, `--${key}`, value]);
        expect([code, stdout], `${command} ${key}`).to.deep.equal([3, '']);
        expect(stderr.trim().split('\n'), stderr).to.have.length(1);
        expect(stderr).to.contain(`${key}: ${value}`).and.match(expected);
      }
    }
  });
});
