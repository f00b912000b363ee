import { expect } from 'chai';
import { type AskedNamespace, ask } from '../../../src/cli/plan/ask.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../../src/kit/json.ts';
import type { RequestOptions } from '../../../src/kube/api-client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { settings } from '../../placement/objects.ts';

const SHOP: AskedNamespace = { name: 'shop', architectures: ['arm64'], daemonSets: [] };
const AGENT: AskedNamespace = { ...SHOP, daemonSets: [{ name: 'agent', patch: [] }] };
const TEMPLATE = {
  metadata: { labels: { app: 'agent' }, annotations: { note: 'x' } },
  spec: {
    serviceAccountName: 'agent',
    tolerations: [{ key: 'own', operator: 'Exists' }],
    containers: [{ image: 'a' }],
  },
};

/** What a pod has of archaware: `tolerations affinity gate`. */
function partsOf(pod: JsonObject): string {
  const spec = objectAt(pod, 'spec');
  const has = [
    (listAt(spec, 'tolerations') ?? []).some(({ key }) => key === 'supported-arch') ? 'tolerations' : '',
    spec.affinity === undefined ? '' : 'affinity',
    (listAt(spec, 'schedulingGates') ?? []).length > 0 ? 'gate' : '',
  ];
  return has.filter(Boolean).join(' ');
}

/** Asks a server that answers to creations and patches with what `answers` returns: an error, or undefined. */
async function asking(
  answers: (what: string, pod: JsonObject) => ApiError | undefined,
  {
    namespaces = [SHOP],
    given = { mode: 'both' },
  }: { namespaces?: readonly AskedNamespace[]; given?: Partial<Settings> } = {},
) {
  const sent: string[] = [];
  const paths: string[] = [];
  const bodies: JsonObject[] = [];
  const client = {
    async request(verb: string, path: string, { body }: RequestOptions = {}) {
      if (verb === 'get') return { spec: { template: TEMPLATE } };
      paths.push(path);
      const pod: JsonObject = verb === 'create' && typeof body === 'object' ? { ...body } : {};
      bodies.push(pod);
      const what = verb === 'create' ? partsOf(pod) : 'patch';
      sent.push(what);
      const error = answers(what, pod);
      if (error !== undefined) throw error;
      return {};
    },
  };
  const { refused, notAsked } = await ask(client, namespaces, settings(given), true, new AbortController().signal);
  const found = refused.map(
    ({ kind, namespace = '', name, parts }) => `${kind} ${namespace}/${name}: ${parts.join(' ')}`,
  );
  return { sent, paths, bodies, refused, found, notAsked: [...notAsked] };
}

const denied = (message: string, status = 403) => new ApiError(status, { message }, 'create pods');
const refusing =
  (...parts: readonly string[]) =>
  (what: string) =>
    parts.some((part) => what.includes(part)) ? denied('denied request: no') : undefined;

describe('the question whether the API server would let such pods in', () => {
  it('costs one dry run for a namespace that takes them', async () => {
    const { sent, found } = await asking(() => undefined);
    expect([sent, found]).to.deep.equal([['tolerations affinity gate'], []]);
  });

  it('is never anything but a dry run', async () => {
    const { paths } = await asking(refusing('tolerations'), { namespaces: [AGENT] });
    expect(paths).to.have.length.above(5);
    for (const path of paths) expect(path).to.match(/\?dryRun=All&/);
  });

  for (const [parts, expected] of [
    [['tolerations'], 'tolerations'],
    [['gate'], 'gate'],
    [['affinity', 'gate'], 'affinity gate'],
    [['tolerations affinity gate'], 'tolerations affinity gate'],
  ] as const) {
    it(`names the parts that are refused: ${parts.join(' and ')}`, async () =>
      expect((await asking(refusing(...parts))).found).to.deep.equal([`Namespace /shop: ${expected}`]));
  }

  it('blames no part for a refusal that a pod without them gets too', async () => {
    const { found, notAsked } = await asking(() => denied('exceeded quota: small'));
    expect(found).to.deep.equal([]);
    expect(notAsked).to.deep.equal([
      ['pods are refused there for another reason: create pods: 403 exceeded quota: small', ['shop']],
    ]);
  });

  for (const [what, error, why] of [
    [
      'a missing right',
      denied('pods is forbidden: User "ann" cannot create resource "pods" in API group ""'),
      /^needs the right to create pods there$/,
    ],
    [
      'a webhook with side effects',
      denied('admission webhook "a.b" does not support dry run', 400),
      /does not support dry run$/,
    ],
    ['a silent webhook', denied('failed calling webhook "a.b": no endpoints', 500), /failed calling webhook/],
    ['a server that has too much to do', denied('later', 429), /later$/],
  ] as const) {
    it(`has no answer after ${what}, said once for all namespaces`, async () => {
      const namespaces = [SHOP, { ...SHOP, name: 'bank' }];
      const { sent, found, notAsked } = await asking(() => error, { namespaces });
      expect([sent.length, found.length, notAsked.length]).to.deep.equal([2, 0, 1]);
      expect(notAsked[0]?.[0]).to.match(why);
      expect(notAsked[0]?.[1]).to.deep.equal(['shop', 'bank']);
    });
  }

  it('takes the 500 of PodTolerationRestriction as a refusal', async () => {
    const { found } = await asking((what) =>
      what.includes('tolerations') ? denied('pod tolerations conflict with its namespace whitelist', 500) : undefined,
    );
    expect(found).to.deep.equal(['Namespace /shop: tolerations']);
  });

  it("is asked for a DaemonSet's template with its own pod, and for the write to it", async () => {
    const { bodies, found, sent } = await asking(
      (what, pod) =>
        stringAt(objectAt(pod, 'spec'), 'serviceAccountName') === 'agent' && what !== '' ? denied('no') : undefined,
      { namespaces: [AGENT], given: { mode: 'taints' } },
    );
    expect(sent).to.deep.equal(['tolerations gate', 'patch', 'tolerations', '']);
    expect(found).to.deep.equal(['DaemonSet shop/agent: tolerations']);
    expect(bodies.at(-1)?.spec).to.deep.equal(TEMPLATE.spec);
    expect(objectAt(bodies.at(-1) ?? {}, 'metadata').labels).to.include({
      app: 'agent',
      'archaware.dev/ignore': 'true',
    });
  });

  it('has the refusal of a write to a template', async () => {
    const { found } = await asking((what) => (what === 'patch' ? denied('hands off kube-system') : undefined), {
      namespaces: [AGENT],
    });
    expect(found).to.deep.equal(['DaemonSet shop/agent: tolerations']);
  });

  it('has an escaped and cut message', async () => {
    const { refused } = await asking((what) => (what === '' ? undefined : denied(`\u001b[31m${'x'.repeat(2000)}`)));
    expect(refused[0]?.message).to.contain('\\u001b').and.to.have.length.below(520);
  });
});
