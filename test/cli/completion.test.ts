import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { COMMON_FLAGS } from '../../src/cli/command-line.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { candidatesFor } from '../../src/cli/completion/candidates.ts';
import { SCRIPTS } from '../../src/cli/completion/scripts.ts';
import { runInProcess } from '../support/in-process.ts';
import { startProduct } from '../support/product.ts';

const KEYS = ['taints.key', 'taints.effect', 'workers'];

describe('completion', () => {
  const rows: readonly (readonly [words: string, expected: readonly string[], live?: string])[] = [
    ['pl', ['plan']],
    ['co', ['config', 'completion']],
    ['config v', ['validate']],
    ['config convert --from n', ['noe']],
    ['completion z', ['zsh']],
    ['clean --dr', ['--dry-run']],
    ['clean --pods k', ['keep']],
    ['plan -o y', ['yaml']],
    ['plan --taints.e', ['--taints.effect']],
    ['explain deploy', ['deployment/'], 'pods'],
    ['explain -n sh', [], 'namespaces'],
    ['explain --context k', [], 'contexts'],
    ['explain -f ', []],
    ['inspect ngi', []],
  ];
  for (const [words, expected, live] of rows) {
    it(`of "${words}" is ${expected.join(', ') || 'nothing'}${live === undefined ? '' : `, and ${live}`}`, () => {
      const found = candidatesFor(words.split(' '), COMMANDS, COMMON_FLAGS, KEYS);
      expect([found.words, found.live]).to.deep.equal([expected, live]);
    });
  }

  it('offers the names of the cluster, and none without one', async () => {
    const product = await startProduct();
    try {
      await product.cluster.createPod({ name: 'web-1', images: [product.image('app', ['amd64'])] });
      const kubeconfig = ['--kubeconfig', product.cluster.kubeconfig];
      const complete = async (...words: readonly string[]) =>
        (await runInProcess(['__complete', ...words])).stdout.split('\n').filter((line) => line !== '');
      expect(await complete('explain', ...kubeconfig, '-n', 'def')).to.deep.equal(['default']);
      expect(await complete('explain', ...kubeconfig, '-n', 'default', 'we')).to.deep.equal(['web-1']);
      expect(await complete('explain', '--kubeconfig', '/nowhere', '-n', 'def')).to.deep.equal([]);
    } finally {
      await product.stop();
    }
  });

  it('prints a script that bash can read, and refuses other shells', async () => {
    const { code, stdout } = await runInProcess(['completion', 'bash']);
    expect(code).to.equal(0);
    execFileSync('bash', ['-n'], { input: stdout });
    expect(Object.keys(SCRIPTS)).to.deep.equal(['bash', 'zsh', 'fish']);
    const refused = await runInProcess(['completion', 'tcsh']);
    expect([refused.code, refused.stderr]).to.deep.equal([
      3,
      'archaware-controller: completion: got "tcsh", expected one of bash, zsh, fish\n',
    ]);
  });
});
