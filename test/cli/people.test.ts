import { expect } from 'chai';
import { folderForEach } from '../support/folder.ts';
import { roleBinding } from '../support/objects.ts';
import { productForEach, workload } from '../support/product.ts';

describe('a person with few rights', () => {
  const product = productForEach();
  const { at, write } = folderForEach();
  beforeEach(async () => {
    await product.cluster.apply(workload('Deployment', 'web', [product.image('web', ['arm64'])]));
  });

  const as = async (person: string, ...args: readonly string[]) =>
    product.command([...args, '--kubeconfig', await product.cluster.serviceAccountKubeconfig('default', person)]);

  it('of one namespace gets an explanation and a plan without nodes, and reads what is missing', async () => {
    // The rights of a namespace alone: a RoleBinding grants the namespaced part of the ClusterRole.
    await product.cluster.apply(roleBinding('developer', 'archaware-reader', 'default'));
    await write({ 'web.yaml': workload('Deployment', 'web', [product.image('web', ['arm64'])]) });
    for (const operands of [
      ['-n', 'default', 'deployment/web'],
      ['-f', at('web.yaml')],
    ]) {
      const { code, stdout, stderr } = await as('developer', 'explain', ...operands);
      expect(code, stderr).to.equal(0);
      expect(stdout).to.match(/can run on arm64 nodes/);
      const [configuration = '', ...notes] = stderr.trim().split('\n');
      expect(configuration).to.match(
        /^configuration: defaults; that of Deployment archaware\/archaware-controller could not be read: /,
      );
      expect(notes.join('\n')).to.match(
        /^the right to list nodes is missing: it is not known what they run .*403.*; an administrator can grant you the ClusterRole archaware-reader: docs\/rights\.md\)$/m,
      );
    }
    const { code, stdout, stderr } = await as('developer', 'plan', '-n', 'default');
    expect(code, stderr).to.equal(2);
    expect(stdout).to.match(/^Deployment +default +web +1 +tolerate +arm64$/m);
  });

  it('with archaware-reader runs explain, plan, report and status on the whole cluster', async () => {
    await product.cluster.apply(roleBinding('reader', 'archaware-reader'));
    for (const [command, exit] of [
      [['explain', '-n', 'default', 'deployment/web'], 0],
      [['plan'], 2],
      [['report'], 0],
      [['status'], 2],
    ] as const) {
      const { code, stderr } = await as('reader', ...command);
      expect(code, `${command.join(' ')}: ${stderr}`).to.equal(exit);
      // What a person who only reads cannot be told, in one line.
      const asked = /^1 namespace\(s\) could not be asked .*: needs the right to create pods there \(default\)$/m;
      expect(asked.test(stderr)).to.equal(command[0] === 'plan');
      expect(stderr.replace(asked, '')).not.to.match(/403|right to/);
    }
  });
});
