import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { at, listAt, textAt } from '../../hack/cluster/json.ts';
import { binaries } from '../../hack/cluster/spawn.ts';
import { run } from '../../hack/programs.ts';
import type { EventReason } from '../../src/names.ts';
import { folderForAll } from '../support/folder.ts';
import { productForAll } from '../support/product.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const RULE = join(ROOT, 'manifests/kustomize/components/alerts/prometheusrule.yaml');
const CASES = join(ROOT, 'test/e2e/support/alerts.promtool.yaml');
const RUNBOOKS = join(ROOT, 'docs/alerts.md');

describe('the alerts', () => {
  const folder = folderForAll();
  let alerts: readonly unknown[];

  before(async () => {
    const spec = at(parse(await readFile(RULE, 'utf8')), 'spec');
    alerts = listAt(spec, 'groups').flatMap((group) => listAt(group, 'rules'));
    await folder.write({ 'alerts.yaml': stringify(spec), 'cases.yaml': await readFile(CASES, 'utf8') });
  });

  /** Throws with what it printed where it finds fault. */
  const promtool = (args: readonly string[], input = '') =>
    run(join(binaries(), 'promtool'), args, { cwd: folder.at(), input });

  it('are rules that Prometheus takes', async () => {
    expect(await promtool(['check', 'rules', '--lint-fatal', 'alerts.yaml'])).to.match(/7 rules found/);
  });

  it('fire when they should, and only then', () => promtool(['test', 'rules', 'cases.yaml']));

  it('each have a runbook, to which its link leads; one more is for an Event', async () => {
    const names = alerts.map((alert) => textAt(alert, 'alert'));
    for (const alert of alerts)
      expect(textAt(alert, 'annotations', 'runbook_url')).to.match(
        new RegExp(`/docs/alerts\\.md#${textAt(alert, 'alert')?.toLowerCase()}$`),
      );
    const headings = [...(await readFile(RUNBOOKS, 'utf8')).matchAll(/^## ([A-Z][a-z]+[A-Z]\w+)$/gm)].map(
      ([, name]) => name,
    );
    const event: EventReason = 'NodeNotInitialized';
    expect(headings).to.have.members([...names, event]);
  });

  describe('and the metrics of a running controller', () => {
    const product = productForAll();
    let metrics: string;

    before(async () => {
      const controller = await product.run();
      await product.eventuallyTainted();
      const joining = { name: 'arm64-2', architecture: 'arm64', labels: { 'karpenter.sh/nodepool': 'default' } };
      await product.cluster.createNode(joining);
      await product.eventuallyTainted();
      metrics = (await controller.get('/metrics')).text;
    });

    it('fit together: each that a rule names has a sample', () => {
      const named = alerts.flatMap((alert) => textAt(alert, 'expr').match(/archaware_[a-z_]+/g) ?? []);
      expect(named).to.include.members([
        'archaware_leader',
        'archaware_oldest_waiting_pod_seconds',
        'archaware_gated_pods',
        'archaware_safety_net_holds',
        'archaware_taints_held_back',
        'archaware_rollout_stopped',
        'archaware_nodes_joined_untainted_total',
      ]);
      const sampled = new Set(metrics.split('\n').map((line) => /^[a-z_]+/.exec(line)?.[0]));
      expect(named.filter((name) => !sampled.has(name))).to.deep.equal([]);
    });

    it('are as Prometheus would have them', async () => {
      expect(await promtool(['check', 'metrics'], metrics)).to.equal('');
    });
  });
});
