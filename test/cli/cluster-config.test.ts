import { createServer } from 'node:http';
import { expect } from 'chai';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';
import { configuredInstallation, productForAll } from '../support/product.ts';

describe("the cluster's own configuration", () => {
  const product = productForAll();
  const folder = folderForEach();

  const flags = () => ['--kubeconfig', product.cluster.kubeconfig, '--registries.insecure', product.registry.host];
  /** Some registries here do not exist. */
  const ONCE = ['--lookup-timeout', '0s'];
  const plan = async (...more: readonly string[]) => {
    const { code, stdout, stderr } = await runInProcess(['plan', '-o', 'json', ...flags(), ...ONCE, ...more], {
      clock: product.clock,
    });
    return { code, stdout, stderr };
  };
  const configure = (configuration: string, namespace = 'archaware') => {
    const metadata = { namespace, name: 'settings' };
    const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'config.yaml': configuration } };
    return product.cluster.apply(JSON.stringify(configMap));
  };
  const install = (where: { namespace?: string; name?: string } = {}) => {
    const flags = ['--taints.effect=PreferNoSchedule', '--new.flag=1'];
    const args = ['run', '--config', '/etc/archaware/config.yaml', ...flags];
    const env = [{ name: 'ARCHAWARE_PODS__DAEMON_SETS', value: 'ignore' }];
    const container = { image: 'example.com/archaware:1', command: ['node', 'dist/main.js'], args, env };
    return product.cluster.apply(configuredInstallation(container, where));
  };

  it('is the defaults if there is no Deployment of its name, and the first line says so', async () => {
    const { code, stderr } = await plan();
    expect(code).to.equal(2);
    expect(stderr).to.equal(
      'archaware is not installed here (no Deployment archaware/archaware-controller); configuration: defaults\n',
    );
    const elsewhere = await plan('--installation', 'tools/arch');
    expect(elsewhere.stderr).to.match(/^archaware is not installed here \(no Deployment tools\/arch\)/);
  });

  it('is refused for something that names no Deployment', async () => {
    for (const wrong of ['archaware', 'a/b/c', '/x', 'A/b']) {
      const { code, stderr } = await plan('--installation', wrong);
      expect(code).to.equal(3);
      expect(stderr).to.include(`--installation: got "${wrong}", expected NAMESPACE/NAME of a Deployment`);
    }
  });

  describe('of one installation', () => {
    before(async () => {
      const text =
        'taints: {key: example.com/arch}\nnodeLabels: {directory: /etc/rules}\nregistries: {caFile: /etc/none/ca.crt}\n';
      await configure(text);
      await install();
    });

    it('is read from its ConfigMap, arguments and variables; flags of the command win', async () => {
      const { stdout, stderr } = await plan();
      expect(stdout).to.match(/"key": "example.com\/arch",\s+"value": "amd64",\s+"effect": "PreferNoSchedule"/);
      expect(stderr.split('\n').slice(0, 2)).to.deep.equal([
        'configuration: ConfigMap archaware/settings, of Deployment archaware/archaware-controller',
        'not taken from the cluster: nodeLabels.directory, registries.caFile; where it matters, give what this machine has with a flag',
      ]);
      expect((await plan('--taints.key', 'own')).stdout).to.match(/"key": "own"/);
    });

    it('has the rules of labels that this machine has, if a flag names their directory', async () => {
      await folder.write({ 'rules/accelerators/tpu': 'kubernetes.io/arch=amd64\n' });
      expect((await plan()).stdout).not.to.contain('"label"');
      const { stdout, stderr } = await plan('--nodeLabels.directory', folder.at('rules'));
      expect(stdout).to.contain('/metadata/labels/accelerators~1tpu');
      expect(stderr).to.match(/^not taken from the cluster: registries\.caFile; /m);
    });

    it('is of the Deployment that --installation names', async () => {
      await product.namespace('tools');
      await configure('taints: {key: example.com/named}\n', 'tools');
      await install({ namespace: 'tools', name: 'arch' });
      const { stdout, stderr } = await plan('--installation', 'tools/arch');
      expect(stdout).to.match(/"key": "example.com\/named"/);
      expect(stderr).to.match(/^configuration: ConfigMap tools\/settings, of Deployment tools\/arch\n/);
    });

    it('with a mistake is refused by every command but status, which goes by the defaults', async () => {
      await product.namespace('wrong');
      await configure('taints: {kye: x}\n', 'wrong');
      await install({ namespace: 'wrong', name: 'arch' });
      expect((await plan('--installation', 'wrong/arch')).code).to.equal(3);
      const inside = { controllerWords: ['run', '--taints.effect', 'x'] };
      for (const [words, options] of [[['--installation', 'wrong/arch'], {}] as const, [[], inside] as const]) {
        const { code, stdout, stderr } = await runInProcess(['status', ...words, ...flags()], options);
        expect(code, stderr).to.equal(2);
        expect(stderr).to.match(/^the controller's configuration has a mistake, and the defaults count: .*taints\./m);
        expect(stdout).to.match(/^problems .*\n(.*\n)*mode +unknown: taints, by the defaults/);
      }
    });

    it('gives way to --config', async () => {
      const { stdout, stderr } = await runInProcess(['plan', '-o', 'json', ...flags(), '--config', '-'], {
        input: 'taints: {key: typed}',
      });
      expect(stdout).to.match(/"key": "typed"/);
      expect(stderr).not.to.match(/^configuration:/m);
    });

    it('is the file of the controller inside its container', async () => {
      const controllerWords = ['run', '--taints.key', 'inside'];
      await product.cluster.createPod({ name: 'here', images: [product.image('web', ['amd64'])] });
      const { stdout, stderr } = await runInProcess(['explain', 'here', '--verbose', ...flags()], { controllerWords });
      expect(stdout).to.match(/taints\.key: inside/);
      expect(stderr).to.match(/^configuration: the arguments of the controller in this pod\n/);
    });

    it('says inside its container to whom more is shown', async () => {
      product.cluster.faults.inject({ path: /\/deployments\/here$/, status: 403, times: 1 });
      const { code, stderr } = await runInProcess(['explain', 'deploy/here', ...flags()], { controllerWords: ['run'] });
      expect(stderr).to.match(/403.*with your own rights/);
      expect(code).to.equal(1);
    });

    it('is the defaults, with the missing right, if it may not be read', async () => {
      product.cluster.faults.inject({ path: /\/configmaps\/settings/, status: 403, times: 1 });
      const { stdout, stderr } = await plan();
      expect(stdout).to.match(/"key": "supported-arch"/);
      expect(stderr).to.match(/^configuration: defaults; that of Deployment \S+ could not be read: .*403/m);
    });

    it('makes clean exit with 2 if it may not be read and no object records anything', async () => {
      product.cluster.faults.inject({ path: /\/configmaps\/settings/, status: 403, times: 1 });
      const { code, stderr } = await runInProcess(['clean', '--yes', ...flags()], { clock: product.clock });
      expect(code).to.equal(2);
      expect(stderr).to.match(/nothing was found, but the cluster's configuration could not be read/);
      const readable = await runInProcess(['clean', '--yes', ...flags()], { clock: product.clock });
      expect(readable.code, readable.stderr).to.equal(0);
    });

    it('sends no login of the user to a mirror that the installation names', async () => {
      const received: string[] = [];
      const mirror = createServer((request, response) => {
        received.push(request.headers.authorization ?? 'none');
        response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      });
      await new Promise<void>((resolve) => mirror.listen(0, '127.0.0.1', resolve));
      const address = mirror.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      const auth = Buffer.from('jane:secret').toString('base64');
      await folder.write({ 'config.json': JSON.stringify({ auths: { 'registry.invalid': { auth } } }) });
      const routes = { endpoints: [`http://127.0.0.1:${port}`], credentials: 'source', fallback: false };
      const registries = { mirrors: { 'registry.invalid': routes } };
      await configure(JSON.stringify({ registries }));
      await product.cluster.createPod({ name: 'private', images: ['registry.invalid/app:1'] });
      try {
        const explain = ['explain', 'private', '--registries.timeout', '1s', ...ONCE];
        const own = ['--credentials.dockerConfigFiles', folder.at('config.json')];
        const { stderr } = await runInProcess([...explain, ...flags(), ...own]);
        expect(stderr).to.match(/^not taken from the cluster: registries\.mirrors; /m);
        expect(received, 'with logins of the user').to.deep.equal([]);
        await runInProcess([...explain, '--kubeconfig', product.cluster.kubeconfig]);
        expect(new Set(received), 'without').to.deep.equal(new Set(['none']));
      } finally {
        mirror.close();
        await configure('');
      }
    });
  });
});
