import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { candidatesFor } from '../../src/cli/completion/complete.ts';
import { SCRIPTS } from '../../src/cli/completion/scripts.ts';
import { allKeys } from '../../src/config/keys.ts';
import { runInProcess } from '../support/in-process.ts';
import { needsPosix } from '../support/platforms.ts';
import { productForAll, workload } from '../support/product.ts';

const KEYS = allKeys().filter(({ path }) => ['taints.key', 'taints.effect', 'workers'].includes(path));

describe('completion', () => {
  const product = productForAll();
  const rows: readonly (readonly [words: string, expected: readonly string[], live?: string])[] = [
    ['pl', ['plan']],
    ['co', ['config', 'completion']],
    ['config v', ['validate']],
    ['completion z', ['zsh']],
    ['clean --dr', ['--dry-run']],
    ['clean --pods k', ['keep']],
    ['plan -o y', ['yaml']],
    ['run --out', []],
    ['plan --taints.e', ['--taints.effect']],
    ['explain deploy', ['deployment/'], 'pods'],
    ['explain -n sh', [], 'namespaces'],
    ['explain --context k', [], 'contexts'],
    ['explain -f ', []],
    ['inspect ngi', []],
    ['explain deployment/', [], 'deployments'],
    ['explain -n shop sts/d', [], 'statefulsets'],
    ['explain cronjob night', [], 'cronjobs'],
    ['explain shop/we', [], 'pods'],
    ['completion k', ['kubectl']],
    ['report --to ar', ['arm', 'arm64']],
    ['report --to amd64,s', ['amd64,s390x']],
    ['check --on=pp', ['--on=ppc64', '--on=ppc64le']],
    ['plan --taints.effect P', ['PreferNoSchedule']],
    ['plan --taints.effect=P', ['--taints.effect=PreferNoSchedule']],
    ['plan --taints.effect = P', ['PreferNoSchedule']],
    ['plan --taints.effect =', ['NoSchedule', 'PreferNoSchedule']],
    ['plan --workers 1', []],
  ];
  for (const [words, expected, live] of rows) {
    it(`of "${words}" is ${expected.join(', ') || 'nothing'}${live === undefined ? '' : `, and ${live}`}`, () => {
      const found = candidatesFor(words.split(' '), KEYS);
      expect([found.words, found.live]).to.deep.equal([expected, live]);
    });
  }

  it('offers the names of the cluster, and none without one', async () => {
    await product.cluster.createPod({ name: 'web-1', images: [product.image('app', ['amd64'])] });
    await product.cluster.apply(workload('Deployment', 'shop', [product.image('app', ['amd64'])]));
    const kubeconfig = ['explain', '--kubeconfig', product.cluster.kubeconfig];
    const rows: readonly (readonly [words: readonly string[], expected: readonly string[]])[] = [
      [[...kubeconfig, '-n', 'def'], ['default']],
      [[...kubeconfig, '-n', 'default', 'web'], ['web-1']],
      [[...kubeconfig, 'default/web'], ['default/web-1']],
      [[...kubeconfig, '-n', 'default', 'deploy/s'], ['deploy/shop']],
      [[...kubeconfig, '-n', 'default', 'deploy', 's'], ['shop']],
      [['plan', '--placement.mode', 'a'], ['affinity']],
      [['explain', '--kubeconfig', '/nowhere', '-n', 'def'], []],
    ];
    for (const [words, expected] of rows) {
      const { stdout } = await runInProcess(['__complete', ...words]);
      expect(stdout.split('\n').filter(Boolean), words.join(' ')).to.deep.equal(expected);
    }
  });

  it('prints a script that bash can read, and refuses other shells', async function () {
    needsPosix(this, 'bash');
    const { code, stdout } = await runInProcess(['completion', 'bash']);
    expect(code).to.equal(0);
    execFileSync('bash', ['-n'], { input: stdout });
    expect(Object.keys(SCRIPTS)).to.deep.equal(['bash', 'zsh', 'fish', 'kubectl']);
    const refused = await runInProcess(['completion', 'tcsh']);
    expect([refused.code, refused.stderr]).to.deep.equal([
      3,
      'archaware: completion: got "tcsh", expected one of bash, zsh, fish, kubectl\n',
    ]);
  });

  it('is for the name by which the program was called, and answers kubectl in its own form', async function () {
    needsPosix(this, 'bash');
    const plugin = await runInProcess(['completion', 'bash'], { program: 'kubectl archaware' });
    expect(plugin.stdout).to.match(/-F _kubectl_archaware_complete kubectl-archaware$/m);
    expect((await runInProcess(['completion', 'kubectl'])).stdout).to.contain('$(kubectl-archaware __complete "$@"');
    // Not every shell has functions with a hyphen.
    const script = SCRIPTS.kubectl?.('stub') ?? '';
    const answer = (found: string) =>
      execFileSync('sh', ['-c', `stub() { printf '${found}'; }\n${script}`], { encoding: 'utf8' });
    expect(answer('')).to.equal(':0\n');
    expect(answer('deployment/')).to.equal('deployment/\n:6\n');
    expect(answer('plan\\nprint')).to.equal('plan\nprint\n:4\n');
  });
});
