import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import { folderForEach } from '../support/folder.ts';
import { runInProcess } from '../support/in-process.ts';
import { productForEach, workload } from '../support/product.ts';

describe('report', () => {
  const product = productForEach();
  const folder = folderForEach();

  /** As somebody who may read everything. */
  const asAdmin = (...args: readonly string[]) => product.asAdmin(['report', ...args]);
  const onFile = (input: string, ...args: readonly string[]) =>
    runInProcess(['report', '-f', '-', '--registries.insecure', product.registry.host, ...args], { input });
  const requesting = (image: string, cpu: string) => ({
    containers: [{ name: 'main', image, resources: { requests: { cpu } } }],
  });
  const states = (stdout: string) => {
    const result: unknown = JSON.parse(stdout);
    return objects(at(result, 'workloads')).map((row) => {
      const state = text(at(row, 'verdicts', 'arm64', 'state'));
      return `${text(row.kind)} ${text(row.name)} ${state}`;
    });
  };

  it('restricts the report to a namespace and to labels', async () => {
    const image = product.image('both', ['amd64', 'arm64']);
    await product.cluster.apply(workload('Deployment', 'web', [image]));
    const labelled = JSON.parse(workload('Deployment', 'api', [image]));
    labelled.metadata.labels = { team: 'red' };
    await product.cluster.apply(JSON.stringify(labelled));
    expect(states((await asAdmin('-n', 'default', '--to', 'arm64', '-o', 'json')).stdout)).to.deep.equal([
      'Deployment api ready',
      'Deployment web ready',
    ]);
    expect(states((await asAdmin('-l', 'team=red', '--to', 'arm64', '-o', 'json')).stdout)).to.deep.equal([
      'Deployment api ready',
    ]);
    expect(states((await asAdmin('-n', 'kube-system', '--to', 'arm64', '-o', 'json')).stdout)).to.deep.equal([]);
  });

  it('judges files without a cluster, and fails under a share', async () => {
    const [both, amd] = [product.image('both', ['amd64', 'arm64']), product.image('amd', ['amd64'])];
    const input = [
      workload('Deployment', 'web', [], { template: requesting(both, '3') }),
      workload('Deployment', 'old', [], { template: requesting(amd, '1') }),
    ].join('\n---\n');
    const under = await onFile(input, '--to', 'arm64', '--fail-under', '80');
    expect(under.code).to.equal(2);
    expect(under.stderr).to.contain('75 % of the requested CPU is ready for arm64, less than --fail-under 80');
    expect(under.stdout.replaceAll(/\s+/g, ' ')).to.contain(
      'arm64: 75 % of the requested CPU can run there today (3 of 4 cores, 1 of 2 workloads).',
    );
    expect((await onFile(input, '--to', 'arm64', '--fail-under', '75')).code).to.equal(0);
  });

  it('tells the people of a namespace what runs where, what waits, and what holds it back', async () => {
    const [both, amd] = [product.image('both', ['amd64', 'arm64']), product.image('amd', ['amd64'])];
    const seen = {
      time: '2026-03-01T06:00:00Z',
      policies: ['red'],
      pods: { placed: 2, waiting: 1 },
      runsOn: { amd64: 2 },
      oldestWaiting: { name: 'far', since: '2026-03-01T05:00:00Z' },
    };
    const annotations = { 'archaware.dev/report': 'true', 'archaware.dev/report-result': JSON.stringify(seen) };
    await product.patch('/api/v1/namespaces/default', { metadata: { annotations } });
    await product.cluster.apply(workload('Deployment', 'web', [both], { spec: { replicas: 2 } }));
    await product.cluster.apply(workload('Deployment', 'old', [amd]));
    await product.cluster.createPod({ name: 'far', images: [both], spec: { nodeSelector: { disk: 'ssd' } } });
    await product.eventually('three pods to run', async () => {
      const pods = objects((await product.get('/api/v1/namespaces/default/pods')).items);
      return pods.filter((pod) => at(pod, 'spec', 'nodeName') !== undefined).length === 3;
    });
    const { stdout, code } = await asAdmin('-n', 'default', '--for-team');
    expect([
      code,
      stdout
        .split('\n\n')[1]
        ?.replaceAll(/ {2,}/g, ' | ')
        .replace(/(web \| 2) \| [^|]+/, '$1 | … '),
    ]).to.deep.equal([
      0,
      [
        'WORKLOAD | PODS | RUNS ON | CAN RUN ON | HELD BACK BY',
        'Deployment old | 1 | 1 on amd64 | amd64 | arm64: amd:1: linux/amd64 only',
        'Deployment web | 2 | … | amd64, arm64 | -',
        'Pod far | 1 | - | - | amd64, arm64: nodeSelector asks for disk=ssd',
      ].join('\n'),
    ]);
    expect(stdout).to.match(
      /^Namespace default: 3 workloads; pods: \d on \w+.*; 1 pod waits for a node\.\nThe controller saw at 2026-03-01T06:00:00Z: 2 placed, 1 waiting, 2 on amd64; far has waited longest, since 2026-03-01T05:00:00Z\.\n/,
    );
    expect(stdout).to.match(
      /Waits for a node; archaware explain POD -n default says more\.\nPOD +SINCE +WHY\nfar +\d+[smhd] +\d+\/\d+ nodes are available/,
    );
    const explained = await product.asAdmin(['explain', 'namespace/default']);
    const withoutAge = (text: string) => text.replace(/^far +\d+s/m, 'far');
    expect(withoutAge(explained.stdout)).to.equal(withoutAge(stdout));
    const refused = await asAdmin('--for-team');
    expect([refused.code, refused.stderr]).to.deep.equal([
      3,
      'archaware: --for-team: got no --namespace, expected --namespace NAME, and --output table, json or yaml\n',
    ]);
  });

  it('prints why whole in a pipe, and as much as fits a terminal', async () => {
    const long = product.image(`${'long-'.repeat(20)}name`, ['amd64']);
    const input = workload('Deployment', 'old', [], { template: requesting(long, '1') });
    const piped = await onFile(input, '--to', 'arm64');
    expect(piped.stdout).to.contain(`${long.split('/').at(-1)}: linux/amd64 only\n`);
    const shown = await product.command(['report', '-f', '-', '--to', 'arm64'], { input, columns: 80 });
    expect(shown.stdout).to.contain('…').and.not.contain('linux/amd64 only\n');
  });

  it('does not hide replicas that request no CPU behind others that do', async () => {
    const [both, amd] = [product.image('both', ['amd64', 'arm64']), product.image('amd', ['amd64'])];
    const input = [
      workload('Deployment', 'tiny', [], { template: requesting(both, '10m') }),
      workload('Deployment', 'big', [amd], { spec: { replicas: 50 } }),
    ].join('\n---\n');
    const { code, stdout, stderr } = await onFile(input, '--to', 'arm64', '--fail-under', '100');
    expect([code, stderr]).to.deep.equal([
      2,
      '0 % of the replicas that request no CPU are ready for arm64, less than --fail-under 100\n',
    ]);
    expect(stdout.replaceAll(/\s+/g, ' ')).to.contain(
      '1 workload requests no CPU and is not in this share: 0 of 50 replicas can run there.',
    );
  });

  it('says what is not known beside the share, in every form', async () => {
    const input = [
      workload('Deployment', 'web', [product.image('both', ['amd64', 'arm64'])]),
      workload('Deployment', 'lost', [`${product.registry.host}/nothing:1`]),
    ].join('\n---\n');
    const failed = `1 image was not looked up (${product.registry.host} not-found: 1)`;
    for (const form of ['table', 'html']) {
      const { stdout, stderr } = await onFile(input, '--to', 'arm64', '-o', form);
      expect([form, stdout.replaceAll(/\s+/g, ' ').replaceAll('\u00a0', ' ')]).to.satisfy(([, shown = '']: string[]) =>
        shown.includes(`${failed}; with their workloads it may be up to 100 %.`),
      );
      expect(stderr).to.equal('');
    }
    const { stdout, stderr } = await onFile(input, '--to', 'arm64', '-o', 'json');
    expect(stderr).to.equal(`${failed}\n`);
    expect(at(JSON.parse(stdout), 'summary', 'notLookedUp')).to.deep.equal({
      images: 1,
      registries: [{ registry: product.registry.host, code: 'not-found', images: 1 }],
      workloads: 1,
    });
  });

  const nothing: readonly (readonly [words: readonly string[], reason: string])[] = [
    [[], 'report: no workload found in the cluster'],
    [['-n', 'misspelt'], 'report: no workload found in the cluster, namespace misspelt'],
    [['-l', 'x=y', '--fail-under', '90'], 'report: no workload with the labels x=y found in the cluster'],
    [['-f', '/dev/null', '--fail-under', '90'], 'report: no workload found in /dev/null'],
  ];
  for (const [words, reason] of nothing) {
    it(`does not pass where there is nothing to judge: ${words.join(' ') || 'an empty cluster'}`, async () => {
      const { code, stdout, stderr } = await asAdmin('--to', 'arm64', ...words);
      expect([code, stdout]).to.deep.equal([3, '']);
      expect(stderr).to.contain(`archaware: ${reason}\n`);
    });
  }

  it('does not pass where no workload wants a pod', async () => {
    const input = workload('Deployment', 'web', [product.image('amd', ['amd64'])], { spec: { replicas: 0 } });
    const { code, stderr } = await onFile(input, '--to', 'arm64', '--fail-under', '90');
    expect([code, stderr]).to.deep.equal([
      3,
      'archaware: --fail-under: nothing to judge: no workload wants a pod (1 are scaled to 0 or suspended)\n',
    ]);
  });

  it('asks for newer tags that have the target', async () => {
    const old = product.image('app', ['amd64']);
    product.registry.put('app', '2', ['amd64']);
    product.registry.put('app', '3', ['amd64', 'arm64']);
    product.registry.put('app', '4-rc', ['arm64']);
    const newer = async (...flags: readonly string[]) => {
      const args = ['--to', 'arm64', '-o', 'json', ...flags];
      const { stdout, stderr } = await onFile(workload('Deployment', 'web', [old]), ...args);
      expect(stderr).to.equal('');
      return objects(at(JSON.parse(stdout), 'images')).map((row) => at(row, 'blocking', 'arm64', 'newer'));
    };
    expect(await newer()).to.deep.equal([undefined]);
    expect(product.registry.requests().some(({ path }) => path.includes('tags/list'))).to.equal(false);
    expect(await newer('--newer')).to.deep.equal(['3']);
  });

  const mistakes: readonly (readonly [words: readonly string[], message: string])[] = [
    [['--to', 'amd64,arm64', '--fail-under', '80'], '--fail-under: got --to amd64,arm64, expected --to with the one'],
    [['--fail-under', '80'], '--fail-under: got no --to'],
    [['--to', 'arm64', '--fail-under', 'most'], '--fail-under: got "most", expected a percentage from 0 to 100'],
    [['--to', 'x64'], 'did you mean amd64?'],
    [['--group-by', 'team'], '--group-by: got "team", expected one of namespace, label:KEY, registry'],
    [['-l', 'a b'], '--selector: cannot read'],
    [['-n', 'a', '-A'], 'report: got --namespace and --all-namespaces'],
    [['-o', 'wide'], '--output: got "wide", expected one of table, json, yaml, html'],
    [['--newer=maybe', '--to', 'arm64'], '--newer: got "maybe", expected true, false or no value'],
    [['-f', '/nowhere/x.yaml'], '-f /nowhere/x.yaml: does not exist'],
  ];
  for (const [words, message] of mistakes) {
    it(`refuses ${words.join(' ')}`, async () => {
      const { code, stderr } = await runInProcess(['report', ...words]);
      expect(stderr).to.contain(message);
      expect(code).to.equal(3);
    });
  }

  it('reads directories and lists, and every form of output is one of the same report', async () => {
    const items = [JSON.parse(workload('Deployment', 'web', [product.image('both', ['amd64', 'arm64'])]))];
    await folder.write({
      'list.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      'README.md': '# not a manifest',
      'old.yaml': workload('Deployment', 'old', [product.image('amd', ['amd64'])]),
    });
    for (const form of ['table', 'json', 'yaml', 'html']) {
      const { code, stdout, stderr } = await runInProcess([
        ...['report', '-f', folder.at(), '--registries.insecure', product.registry.host],
        ...['--to', 'arm64', '--group-by', 'namespace', '-o', form],
      ]);
      expect([code, stderr], form).to.deep.equal([0, '']);
      expect(stdout, form).to.contain('old');
    }
  });
});
