import { expect } from 'chai';
import { at, type JsonObject, objects, text } from '../simulator/json.ts';
import { heldLease, roleBinding } from '../support/objects.ts';
import { installation, PODS, type Product, startProduct, workload } from '../support/product.ts';

const RBAC = 'rbac.authorization.k8s.io';
const OWN_PODS = '/api/v1/namespaces/archaware/pods';
const OWN_LEASE = '/apis/coordination.k8s.io/v1/namespaces/archaware/leases/archaware-controller';
const MODES = ['taints', 'affinity', 'both', 'observe'] as const;
const STATES = ['not installed', 'leader away', 'installed'] as const;

/** What Kubernetes' own ClusterRole `view` has of the kinds that matter here: no nodes, no Secrets, no ClusterRoleBindings. */
const VIEW = {
  apiVersion: `${RBAC}/v1`,
  kind: 'ClusterRole',
  metadata: { name: 'view' },
  rules: [
    { apiGroups: [''], resources: ['pods', 'namespaces', 'events', 'serviceaccounts', 'configmaps'] },
    { apiGroups: ['apps'], resources: ['deployments', 'daemonsets', 'replicasets', 'statefulsets'] },
    { apiGroups: ['batch'], resources: ['jobs', 'cronjobs'] },
    { apiGroups: ['events.k8s.io'], resources: ['events'] },
  ].map((rule) => ({ ...rule, verbs: ['get', 'list', 'watch'] })),
};

/** The commands that look images up. */
const LOOKS_UP: ReadonlySet<string> = new Set(['plan', 'explain', 'report']);
/** What `status` may only say to a person who may read what it is about. */
const KNOWN_BY_LEASES = /nobody holds|no replica leads|renewed|there is no Lease/;
const KNOWN_BY_NODES = /nodes? without the taint|untainted/;

/** What `status` says first where a leader has the Lease, but has written nothing yet. */
const WITH_A_LEADER = {
  taints: /^2 nodes without the taint .*: amd64-1, arm64-1/,
  affinity: /^there is no MutatingWebhookConfiguration /,
  both: /^2 nodes without the taint .*: amd64-1, arm64-1/,
  observe: /^none found; 4 lines could not be read$/,
};

/** A promise that the controller made before it went away, far enough in the future. */
const PROMISED = `${new Date(Date.now() + 3_600_000 * 6).toISOString().slice(11, 19)} UTC`;
const PROMISE = `the pod starts by itself at ${PROMISED} at the latest`;
/** What is true only where archaware is installed, leads, and does more than to observe. */
const NEEDS_A_LEADER = [
  /at its next start/,
  /(?<!; then )delete the pod, so that its ReplicaSet creates another/,
  /its pods get it(?! once)/,
  /archaware adds it/,
  /starts by itself/,
];

describe('what the commands say of one cluster', () => {
  let product: Product;
  const kubeconfigs = new Map<string, string>();
  const runsOn = new Map<string, readonly string[]>();

  before(async () => {
    product = await startProduct({ nodes: ['arm64'], cluster: { imagePlatforms: (image) => runsOn.get(image) } });
    const { cluster } = product;
    const image = (name: string, platforms: readonly string[]) => {
      const reference = product.image(name, platforms);
      runsOn.set(reference, platforms);
      return reference;
    };
    const amd = image('amd', ['amd64']);
    const onNode = (name: string, node: string) =>
      product.eventually(`${name} on ${node}`, async () =>
        (await product.list(PODS)).some(
          (pod) => at(pod, 'metadata', 'labels', 'app') === name && at(pod, 'spec', 'nodeName') === node,
        ),
      );
    await cluster.apply(workload('Deployment', 'wrong', [amd]));
    await onNode('wrong', 'arm64-1');
    await product.patch('/api/v1/nodes/arm64-1', { spec: { unschedulable: true } });
    await cluster.createNode({ name: 'amd64-1', architecture: 'amd64' });
    await cluster.apply(workload('Deployment', 'right', [amd]));
    await onNode('right', 'amd64-1');
    await product.patch('/api/v1/nodes/arm64-1', { spec: { unschedulable: null } });
    await cluster.apply(workload('Deployment', 'multi', [image('multi', ['amd64', 'arm64'])]));
    await cluster.apply(workload('Deployment', 'lost', [`${product.registry.host}/lost:1`]));
    await cluster.apply(workload('DaemonSet', 'agent', [image('agent', ['amd64', 'arm64'])]));
    await cluster.apply(workload('DaemonSet', 'amdonly', [amd]));
    await cluster.createPod({
      name: 'late',
      images: [`${product.registry.host}/lost:1`],
      spec: { nodeSelector: { disk: 'none' } },
    });
    const late = await product.get(`${PODS}/late`);
    await cluster.apply(
      JSON.stringify({
        ...{ apiVersion: 'events.k8s.io/v1', kind: 'Event', metadata: { name: 'late.1', namespace: 'default' } },
        regarding: {
          apiVersion: 'v1',
          kind: 'Pod',
          name: 'late',
          namespace: 'default',
          uid: at(late, 'metadata', 'uid'),
        },
        ...{ reason: 'ImageUnresolvable', type: 'Warning', action: 'Placing', note: `x; ${PROMISE}` },
        ...{ reportingController: 'archaware-controller', reportingInstance: 'a' },
        eventTime: new Date().toISOString().replace('Z', '000Z'),
      }),
    );
    await cluster.apply(JSON.stringify(VIEW));
    await cluster.apply(roleBinding('administrator', 'archaware-reader'));
    await cluster.apply(roleBinding('view', 'view'));
    kubeconfigs.set('administrator', cluster.kubeconfig);
    for (const person of ['view', 'nobody'])
      kubeconfigs.set(person, await cluster.serviceAccountKubeconfig('default', person));
  });
  after(() => product.stop());

  const run = async (person: string, ...args: readonly string[]) => {
    const access = ['--kubeconfig', kubeconfigs.get(person) ?? '', '--registries.insecure', product.registry.host];
    const patience = LOOKS_UP.has(args[0] ?? '') ? ['--lookup-timeout', '0s'] : [];
    return product.command([...args, ...access, ...patience]);
  };

  /** Brings the installation into a state. Its own image cannot be looked up. */
  async function bring(state: (typeof STATES)[number]): Promise<void> {
    await product.cluster.request('DELETE', OWN_LEASE);
    if (state === 'not installed') return;
    const containers = [{ name: 'c', image: `${product.registry.host}/archaware:1`, args: ['run'] }];
    await product.cluster.apply(installation({ containers }));
    await product.eventually('its pod', async () => (await product.list(OWN_PODS)).length === 1);
    if (state === 'leader away') return;
    await product.cluster.apply(heldLease());
  }

  /** Returns the name of a pod, on that node if one is given. */
  const podOf = async (app: string, node?: string) => {
    const [pod] = (await product.list(PODS)).filter(
      (each) =>
        at(each, 'metadata', 'labels', 'app') === app && (node === undefined || at(each, 'spec', 'nodeName') === node),
    );
    return text(at(pod, 'metadata', 'name'));
  };

  for (const state of STATES) {
    describe(state, () => {
      before(() => bring(state));

      for (const mode of MODES) {
        it(`plan, mode ${mode}: who is on a wrong node, who would be Pending, and what new pods get`, async () => {
          const { code, stdout, stderr } = await run('administrator', 'plan', '--placement.mode', mode, '-o', 'json');
          const result: unknown = JSON.parse(stdout);
          const named = (field: string, is: (each: JsonObject) => boolean = () => true) =>
            objects(at(result, field))
              .filter(is)
              .map(({ name }) => text(name));
          expect(code, stderr).to.equal(mode === 'observe' ? 0 : 2);
          expect(named('workloads', ({ onWrongNode }) => onWrongNode === true)).to.deep.equal(['amdonly', 'wrong']);
          expect(named('workloads', ({ reach }) => reach === 'nowhere')).to.deep.equal([]);
          expect(named('workloads', ({ pendingNow }) => pendingNow === true)).to.deep.equal([]);
          expect(named('workloads', ({ pendingAtRestart }) => pendingAtRestart === true)).to.deep.equal([]);
          const own = state === 'not installed' ? [] : ['archaware-controller'];
          expect(named('workloads', ({ reach }) => reach === 'unknown')).to.deep.equal([...own, 'lost', 'late']);
          expect(objects(at(result, 'unresolved'))).to.have.length(own.length + 1);
          const required = objects(at(result, 'newPods')).map(
            ({ name, requires }) => `${text(name)} ${objects(requires).map(({ values }) => String(values))}`,
          );
          expect(required).to.deep.equal(
            mode === 'affinity' || mode === 'both' ? ['multi amd64,arm64', 'right amd64', 'wrong amd64'] : [],
          );
        });

        it(`explain, mode ${mode}: no falsehood about pods, and no promise without a leader`, async () => {
          for (const person of ['administrator', 'view'] as const) {
            const says = async (operand: string) => {
              const { code, stdout, stderr } = await run(person, 'explain', operand, '-v', '--placement.mode', mode);
              expect(code, stderr).to.equal(0);
              const [verdict = ''] = stdout.split('\n');
              expect(stdout, `${person} ${operand}`).not.to.match(/unknown architecture|no architecture/);
              const acts = state === 'installed' && mode !== 'observe';
              if (person === 'administrator') {
                const where = `${person} ${operand}: ${stdout}`;
                if (!acts) for (const claim of NEEDS_A_LEADER) expect(stdout, where).not.to.match(claim);
                expect(/^archaware +(is not installed|no replica leads)/m.test(stdout), where).to.equal(
                  state !== 'installed',
                );
              } else {
                expect(stdout).to.match(/^archaware +is perhaps not installed/m);
                expect(stdout).not.to.match(/delete the pod, so that its ReplicaSet creates another(?!, if archaware)/);
              }
              return { verdict, stdout };
            };
            const right = await says(await podOf('right', 'amd64-1'));
            expect(right.verdict)
              .to.match(/ runs on amd64-1/)
              .and.not.to.match(/wrong|another node|does not run/);
            const wrong = await says(await podOf('wrong', 'arm64-1'));
            expect(wrong.verdict).to.match(/ is on arm64-1.*, and does not run there/);
            expect(wrong.stdout).to.match(/^next /m);
            expect((await says(await podOf('multi'))).verdict).not.to.match(/wrong|another node|does not run/);
            expect((await says(await podOf('lost'))).verdict).to.match(/ runs on /);
            await says('deployment/right');
            const late = await says('late');
            if (mode === 'observe') expect(late.stdout).not.to.include(PROMISED);
            else if (person === 'view')
              expect(late.verdict).to.include(`the controller said: it starts by itself at ${PROMISED}`);
            else expect(late.verdict.includes(PROMISED), late.verdict).to.equal(state === 'installed');
          }
        });
      }

      for (const mode of MODES) {
        it(`status, mode ${mode}: whether archaware is there and leads, and nothing that this person cannot see`, async () => {
          const says = async (person: string) => {
            const { code, stdout } = await run(person, 'status', '--placement.mode', mode);
            const [verdict = ''] = stdout.split('\n');
            return { code, stdout, verdict: verdict.replace(/^problems +/, '') };
          };
          const seen = await says('administrator');
          const expected = {
            'not installed': /^archaware is not installed: there is no Deployment .*, and nobody holds its Lease/,
            'leader away': /^no replica leads: there is no Lease /,
            installed: WITH_A_LEADER[mode],
          };
          expect(seen.verdict).to.match(expected[state]);
          expect(seen.code).to.equal(state === 'installed' && mode === 'observe' ? 0 : 2);
          expect(seen.stdout).to.match(state === 'installed' ? /^leader +a, renewed/m : /^leader +none: /m);
          const guard =
            mode === 'taints' || mode === 'both' ? 'no DaemonSet has tolerations' : `mode ${mode} gives DaemonSets no`;
          expect(seen.stdout).to.match(new RegExp(`^guard +nothing to guard: ${guard}`, 'm'));

          const developer = await says('view');
          expect(developer.code).to.equal(state === 'not installed' ? 2 : 0);
          expect(developer.verdict).to.match(
            state === 'not installed'
              ? /^archaware is not installed here: there is no Deployment /
              : /^none found; \d lines could/,
          );
          const nobody = await says('nobody');
          expect([nobody.code, nobody.verdict]).to.deep.equal([1, 'none found; 10 lines could not be read']);
          for (const { stdout } of [developer, nobody]) {
            expect(stdout).not.to.match(KNOWN_BY_LEASES);
            expect(stdout).not.to.match(KNOWN_BY_NODES);
          }
          expect(nobody.stdout).not.to.match(/nothing to guard|^webhook +off/m);
        });
      }

      it('clean --dry-run: refuses beside an installation, and says what it may not read', async () => {
        // clean watches a Lease for as long as it lasts: this one is a short one.
        if (state === 'installed') await product.patch(OWN_LEASE, { spec: { leaseDurationSeconds: 1 } });
        const { code, stdout, stderr } = await run('administrator', 'clean', '--dry-run', '-o', 'json');
        expect(code, stderr).to.equal(0);
        const { removed, left } = JSON.parse(stdout);
        expect(
          Object.values(removed).every((count) => count === 0),
          stdout,
        ).to.equal(true);
        const isThere = state !== 'not installed';
        expect(objects(left).some(({ kind }) => kind === 'Deployment')).to.equal(isThere);
        expect(stderr.includes('without --dry-run, clean refuses: Deployment archaware/archaware-controller')).to.equal(
          isThere,
        );
        if (state === 'installed') await product.cluster.apply(heldLease());
        for (const person of ['view', 'nobody']) {
          for (const how of ['--dry-run', '--yes']) {
            const refused = await run(person, 'clean', how);
            expect([refused.code, refused.stdout], `${person} ${how}`).to.deep.equal([1, '']);
            expect(refused.stderr).to.match(/^archaware: get .*: 403 .*as an administrator/m);
          }
        }
      });

      it('plan -n, report and explain go on without the nodes, and say what they cannot know', async () => {
        const planned = await run('view', 'plan', '-n', 'default', '-o', 'json');
        expect(planned.code, planned.stderr).to.equal(2);
        expect(planned.stderr).to.match(/^the right to list nodes is missing: it is not known who is on a wrong node/m);
        for (const workload of objects(at(JSON.parse(planned.stdout), 'workloads'))) {
          expect(workload).not.to.have.property('onWrongNode');
          expect([workload.pendingAtRestart, workload.pendingNow]).to.deep.equal([false, false]);
          expect(workload.reach).not.to.equal('nowhere');
        }
        const text = await run('view', 'plan', '-n', 'default');
        expect(text.stdout)
          .to.include('it is not known who is on a wrong node')
          .and.not.to.match(/^ +\d on a wrong node/m);
        const report = await run('view', 'report', '--to', 'arm64');
        expect([report.code, report.stderr.includes('the right to list nodes is missing')]).to.deep.equal([0, true]);
      });

      it('a person without rights gets one line and nothing else', async () => {
        for (const words of [['plan'], ['plan', '-n', 'default'], ['explain', 'late'], ['report']]) {
          const { code, stdout, stderr } = await run('nobody', ...words);
          expect([code, stdout], words.join(' ')).to.deep.equal([1, '']);
          expect(stderr).to.match(/^archaware: .*403.*administrator can grant you/m);
        }
      });
    });
  }
});
