import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { at, listAt } from '../../hack/cluster/json.ts';
import { runBundle } from '../support/controller-process.ts';
import { ours, runs, taints, tolerations, uidOf } from '../support/objects.ts';
import { arrangeWebhook, eventuallyTrusted } from '../support/webhook.ts';
import { deployment, pod, statefulSet } from '../support/workloads.ts';
import { pathOf } from '../support/world.ts';
import { affinity, freshImage, GATE, gates, ON_ARM } from './support/placed.ts';
import { arrange, type Places } from './support/places.ts';
import { refusing } from './support/refusing.ts';
import { worldForAll } from './support/world.ts';

const PLUGINS = '--enable-admission-plugins=NodeRestriction,PodTolerationRestriction';
const WHITELIST = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist';
const OWN = ['not-ready', 'unreachable', 'memory-pressure'];
/** As an administrator writes it who has never heard of archaware. */
const OTHERS = JSON.stringify(OWN.map((key) => ({ operator: 'Exists', key: `node.kubernetes.io/${key}` })));
const NO_TOLERATIONS =
  "object.spec.?tolerations.orValue([]).all(t, t.?key.orValue('').startsWith('node.kubernetes.io/'))";

describe('policies of others that refuse what archaware adds, on the real control plane, in this order', () => {
  const world = worldForAll({ cluster: { apiServerArgs: [PLUGINS] } });
  let places: Places;
  let hook: readonly string[];
  before(async () => {
    places = await arrange(world);
    const names = ['policy', 'whitelist', 'nogates', 'open'];
    for (const name of names) await world.namespace(name);
    await world.cluster.kubectl(['annotate', 'namespace', 'whitelist', `${WHITELIST}=${OTHERS}`]);
    await world.cluster.apply(
      refusing('policy', { expression: NO_TOLERATIONS, message: 'tolerations are not allowed here' }),
    );
    await world.cluster.apply(
      refusing('nogates', {
        expression: "object.spec.?schedulingGates.orValue([]).all(g, g.name == 'example.com/own')",
        message: 'scheduling gates are not allowed here',
      }),
    );
    const webhook = await arrangeWebhook(world);
    hook = webhook.flags;
    await world.eventually('the policies to be in force', async () => {
      const tolerating = pod('policy', 'probe', { images: ['a'], tolerations: [{ key: 'x', operator: 'Exists' }] });
      const gated = pod('nogates', 'probe', { images: ['a'], spec: { schedulingGates: [{ name: 'x' }] } });
      const codes = await Promise.all(
        [tolerating, gated].map(async (each) => {
          const path = `/api/v1/namespaces/${each.metadata.namespace}/pods?dryRun=All`;
          return (await world.cluster.request('POST', path, each)).status;
        }),
      );
      return codes.every((code) => code === 422);
    });
  });

  /** The problems of `status`, up to their second colon. */
  async function problems(): Promise<string[]> {
    return listAt(await asAdmin('status'), 'problems').map((each) =>
      String(at(each, 'problem')).split(': ').slice(0, 2).join(': '),
    );
  }
  /** The leader writes its problems at most every 30 seconds. */
  const saysProblem = (problem: string) =>
    world.eventually(`status to say ${problem}`, async () => (await problems()).includes(problem));

  /** The only pod of a workload, once it is there. */
  const created = (namespace: string, app: string) =>
    world.eventually(`a pod of ${namespace}/${app}`, async () => (await world.pods(namespace, app))[0]);

  const inMode = ['--placement.mode', 'both'];
  /** Runs a command as the administrator, who may create pods; returns its machine output. */
  async function asAdmin(command: string, ...args: readonly string[]): Promise<unknown> {
    const access = ['--kubeconfig', world.cluster.kubeconfig, '--registries.insecure', world.registry.host];
    const { stdout, stderr } = await runBundle([command, ...access, ...inMode, '-o', 'json', ...args]);
    try {
      return JSON.parse(stdout);
    } catch {
      throw new Error(`${command}: ${stdout}${stderr}`);
    }
  }

  it('are named by plan before archaware runs, and nothing is created for it', async () => {
    const image = world.image('arm64');
    const held = { images: [image], spec: { schedulingGates: [{ name: 'example.com/own' }] } };
    await world.create(...['policy', 'whitelist', 'nogates', 'open'].map((namespace) => pod(namespace, 'held', held)));
    const count = async () =>
      (await Promise.all(['policy', 'whitelist', 'nogates', 'open'].map((each) => world.list('Pod', each)))).flat()
        .length;
    const before = await count();
    const found = listAt(await asAdmin('plan'), 'refused').map((each) => [
      at(each, 'kind'),
      at(each, 'name'),
      listAt(each, 'parts').join(' '),
    ]);
    expect(found).to.deep.equal([
      ['Namespace', 'nogates', 'gate'],
      ['Namespace', 'policy', 'tolerations'],
      ['Namespace', 'whitelist', 'tolerations'],
    ]);
    expect(await count()).to.equal(before);
    // The account of archaware may not create pods.
    const { stderr } = await world.command(['plan', ...inMode]);
    expect(stderr).to.match(
      /4 namespace\(s\) could not be asked whether such pods may be created: needs the right to create pods there/,
    );
    await Promise.all(['policy', 'whitelist', 'nogates', 'open'].map((each) => world.remove('Pod', each, 'held')));
  });

  it('release a pod whose tolerations are answered with 500, after a minute, with its affinity', async () => {
    await world.run([...hook, ...inMode, '--bootstrap.timeout', '2s']);
    await eventuallyTrusted(world);
    const image = await freshImage(world, 'arm64');
    await world.create(pod('whitelist', 'cold', { images: [image] }));
    expect(gates(await world.get('Pod', 'whitelist', 'cold'))).to.deep.equal([GATE]);
    await world.eventuallyEvent('whitelist', 'WriteRefused', /conflict with its namespace whitelist/);
    const advice = listAt(await asAdmin('explain', 'whitelist/cold'), 'advice').map(String);
    expect(advice.join()).to.match(/policy or webhook that refuses it .*Event WriteRefused: .*namespace whitelist/);
    await saysProblem('Pod whitelist/cold: WriteRefused');
    const found = await world.cluster.waitFor(
      'the gate to go',
      async () => {
        const now = await world.get('Pod', 'whitelist', 'cold');
        return gates(now).length === 0 && now;
      },
      180_000,
    );
    expect([tolerations(found), affinity(found)]).to.deep.equal([[], ON_ARM]);
    await world.eventuallyEvent('whitelist', 'OpenPlacement', /^released without tolerations, .*namespace whitelist/);
  }).timeout(240_000);

  it('let pods of a Deployment and a StatefulSet be created within seconds, without the refused tolerations', async () => {
    const image = await freshImage(world, 'arm64');
    // Its platforms are known from now on.
    await world.create(pod('open', 'warm', { images: [image] }));
    await world.eventuallyTolerates('open', 'warm', ours('arm64'));
    for (const namespace of ['policy', 'whitelist']) {
      await world.create(
        deployment(namespace, 'web', { images: [image] }),
        statefulSet(namespace, 'db', { images: [image] }),
      );
      for (const app of ['web', 'db']) {
        const found = await created(namespace, app);
        expect([tolerations(found), affinity(found)]).to.deep.equal([[], ON_ARM]);
      }
      const note = await world.eventuallyEvent(namespace, 'RefusedByPolicy', /names tolerations/);
      expect(note).to.contain('leaves it out of the next pods').and.contain('tolerations of supported-arch');
      const advice = listAt(await asAdmin('explain', '-n', namespace, 'deployment/web'), 'advice').map(String);
      expect(advice.join()).to.match(/^Event RefusedByPolicy: pods cannot be created/);
      await saysProblem(`StatefulSet ${namespace}/db: RefusedByPolicy`);
    }
  });

  it('let pods with an unknown image be created without the refused gate, and the loop gives them tolerations', async () => {
    await world.create(deployment('nogates', 'web', { images: [await freshImage(world, 'arm64')] }));
    const found = await created('nogates', 'web');
    await world.eventuallyTolerates('nogates', String(at(found, 'metadata', 'name')), ours('arm64'));
    await world.eventually('it to run', async () => (await world.pods('nogates', 'web')).every(runs));
    await world.eventuallyEvent('nogates', 'RefusedByPolicy', /names scheduling gates/);
  });

  it('make no difference to another namespace, whatever its Events claim', async () => {
    const image = await freshImage(world, 'arm64');
    await world.create(pod('open', 'again', { images: [image] }));
    await world.eventuallyTolerates('open', 'again', ours('arm64'));
    await world.create(deployment('open', 'web', { images: [image] }));
    const first = await created('open', 'web');
    const [owner] = listAt(first, 'metadata', 'ownerReferences');
    // The Event of a tenant in its own namespace, about an owner in another one.
    const forged = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'forged', namespace: 'nogates' },
      involvedObject: { ...Object(owner), namespace: 'open' },
      reason: 'FailedCreate',
      message: 'tolerations, affinity and schedulingGates are refused',
    };
    expect((await world.cluster.request('POST', '/api/v1/namespaces/nogates/events', forged)).status).to.equal(422);
    const elsewhere = { ...forged, involvedObject: { ...Object(owner), namespace: 'nogates' } };
    expect((await world.cluster.request('POST', '/api/v1/namespaces/nogates/events', elsewhere)).status).to.equal(201);
    await world.eventuallyEvent('nogates', 'RefusedByPolicy', /tolerations, affinity and schedulingGates are refused/);
    await world.remove('Pod', 'open', String(at(first, 'metadata', 'name')));
    const next = await world.eventually('the next pod', async () =>
      (await world.pods('open', 'web')).find((each) => at(each, 'metadata', 'uid') !== at(first, 'metadata', 'uid')),
    );
    expect([tolerations(next), affinity(next)]).to.deep.equal([ours('arm64'), ON_ARM]);
  });

  it('are no problem of status by an Event alone, and a taint that is taken off again is one with its reason', async () => {
    const forged = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'forged-too', namespace: 'open' },
      eventTime: '2026-11-23T12:00:00.000000Z',
      reportingController: 'archaware-controller',
      reportingInstance: 'x',
      type: 'Warning',
      reason: 'WriteRefused',
      action: 'Placing',
      note: 'all is lost',
      regarding: {
        apiVersion: 'v1',
        kind: 'Pod',
        namespace: 'open',
        name: 'warm',
        uid: uidOf(await world.get('Pod', 'open', 'warm')),
      },
    };
    expect(
      (await world.cluster.request('POST', '/apis/events.k8s.io/v1/namespaces/open/events', forged)).status,
    ).to.equal(201);
    expect((await problems()).filter((each) => each.includes('open/warm'))).to.deep.equal([]);
    await world.eventually('the contention to be noticed', async () => {
      const node = await world.node('arm64-1');
      if (taints(node).length > 0)
        await world.cluster.request('PATCH', pathOf('Node', '', 'arm64-1'), { spec: { taints: null } });
      return (await world.events('default', 'WriteContested')).length > 0;
    });
    // Without its configuration it is not known which taint a node lacks.
    const file = await places.file('config.yaml', 'placement: {mode: both}\n');
    const found = await world.eventually('the leader to have written the contention', async () => {
      const all = listAt(await asAdmin('status', '--config', file), 'problems');
      const texts = all.map((each) => [at(each, 'problem'), at(each, 'do')].map(String));
      return texts.some(([problem]) => problem?.includes('WriteContested')) && texts;
    });
    const [, advice] = found.find(([problem]) => problem?.startsWith('Node arm64-1: WriteContested: ')) ?? [];
    expect(advice, JSON.stringify(found)).to.match(/^set the taint where that writer gets its taints from/);
  });

  it('let everything in once they say what docs/security.md says', async () => {
    await world.namespace('listed');
    const whitelist = await documented('sh', 'tolerationsWhitelist');
    const [, quoted = ''] = /'(.*)'/s.exec(whitelist) ?? [];
    const annotated = await world.cluster.kubectl(['annotate', 'namespace', 'listed', quoted]);
    expect(annotated.code, annotated.stderr).to.equal(0);
    await world.cluster.apply(await documented('yaml', 'only-known-tolerations'));
    const binding = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'only-known-tolerations' },
      spec: {
        policyName: 'only-known-tolerations',
        validationActions: ['Deny'],
        matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'listed' } } },
      },
    };
    await world.cluster.apply(JSON.stringify(binding));
    const post = async (spec: object) => {
      const body = pod('listed', 'probe', { images: ['a'], spec: { ...spec } });
      return (await world.cluster.request('POST', '/api/v1/namespaces/listed/pods?dryRun=All', body)).status;
    };
    await world.eventually('the policy to be in force', async () => {
      const others = [{ key: 'example.com/other', operator: 'Exists' }];
      return (
        (await post({ tolerations: others })) !== 201 && (await post({ schedulingGates: [{ name: 'x.y/z' }] })) === 422
      );
    });
    for (const app of ['cold', 'warm']) {
      await world.create(deployment('listed', app, { images: [await freshImage(world, 'arm64')] }));
      const { metadata } = Object(await created('listed', app));
      await world.eventuallyTolerates('listed', String(metadata.name), ours('arm64'));
      expect(affinity(await world.get('Pod', 'listed', String(metadata.name)))).to.deep.equal(ON_ARM);
    }
    expect(await world.events('listed', 'RefusedByPolicy')).to.deep.equal([]);
  });
});

/** The block of docs/security.md that contains a text. */
async function documented(language: string, contains: string): Promise<string> {
  const markdown = await readFile(new URL('../../docs/security.md', import.meta.url), 'utf8');
  const blocks = [...markdown.matchAll(/^```(\w+)[^\n]*\n(.*?)^```$/gms)];
  const [, , text] = blocks.find(([, of, block]) => of === language && block?.includes(contains)) ?? [];
  if (text === undefined) throw new Error(`docs/security.md has no block with ${contains}`);
  return text;
}
