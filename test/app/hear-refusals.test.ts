import { setImmediate as turn } from 'node:timers/promises';
import { expect } from 'chai';
import { startRefusedCreations } from '../../src/app/hear-refusals.ts';
import { loadConfig } from '../../src/config/load.ts';
import { toSettings } from '../../src/config/settings.ts';
import { type JsonObject, objectAt, stringAt } from '../../src/kit/json.ts';
import type { Occurrence } from '../../src/kube/events.ts';
import { createStore } from '../../src/kube/watch/collection.ts';
import { createLog } from '../../src/observability/log.ts';
import { readDaemonSet } from '../../src/placement/objects/daemonset.ts';
import { readNamespace } from '../../src/placement/objects/namespace.ts';
import { createHandClock } from '../controllers/hand-clock.ts';
import { clientOf } from '../support/client-of.ts';

const DENIED = 'Error creating: pods "x" is forbidden: denied request: tolerations and schedulingGates are not allowed';
const event = (kind: string, name: string, note = DENIED): JsonObject => ({
  metadata: { namespace: 'shop', name: 'e', resourceVersion: '5' },
  reason: 'FailedCreate',
  regarding: { apiVersion: 'apps/v1', kind, namespace: 'shop', name, uid: `uid-${name}` },
  note,
});
const daemonSet = (name: string, recorded?: object) =>
  readDaemonSet({
    metadata: {
      ...{ namespace: 'shop', name, uid: `uid-${name}`, resourceVersion: '1' },
      ...(recorded ? { annotations: { 'archaware.dev/tolerations': JSON.stringify(recorded) } } : {}),
    },
    spec: { template: { spec: { containers: [] } } },
  });
const OURS = [{ key: 'supported-arch', operator: 'Equal', value: 'arm64', effect: 'NoSchedule' }];

/** Lets one Event arrive. Returns what is left out of its owner's pods, and what is said about the owner. */
async function arriving(
  given: JsonObject,
  flags: Readonly<Record<string, string>>,
  { labels = {}, leads = true }: { labels?: JsonObject; leads?: boolean } = {},
) {
  const { config } = loadConfig({ environment: {}, flags });
  const end = new AbortController();
  const told: Occurrence[] = [];
  let isWatched = false;
  const client = clientOf({
    request: async () => ({ metadata: { resourceVersion: '1' } }),
    async watch(_path, { onPiece }) {
      if (isWatched) return;
      isWatched = true;
      onPiece(Buffer.from(`${JSON.stringify({ type: 'ADDED', object: given })}\n`));
    },
  });
  const namespaces = createStore<ReturnType<typeof readNamespace>>();
  namespaces.put('shop', readNamespace({ metadata: { name: 'shop', uid: 'n', labels } }));
  const daemonSets = createStore<ReturnType<typeof readDaemonSet>>();
  daemonSets.put('shop/ours', daemonSet('ours', OURS));
  daemonSets.put('shop/theirs', daemonSet('theirs'));
  const stores = { namespaces: { store: namespaces }, daemonSets: { store: daemonSets } };
  const memory = startRefusedCreations({
    config,
    client,
    clock: createHandClock(),
    log: await createLog(config.log, { write() {} }),
    events: {
      emit(occurrence) {
        if (leads) told.push(occurrence);
        return leads;
      },
    },
    settings: () => toSettings(config),
    watches: stores,
    signal: end.signal,
  });
  for (let step = 0; step < 10; step++) await turn();
  end.abort();
  const owner = stringAt(objectAt(given, 'regarding'), 'uid') ?? '';
  return {
    isWatched,
    left: memory.refused('shop', owner).join(' '),
    told: told.map(({ reason, note }) => `${reason}: ${note}`),
  };
}

describe('the watch for pods that are refused because of archaware', () => {
  type Flags = Readonly<Record<string, string>>;
  const mode = (of: string, more: Flags = {}): Flags => ({ 'placement.mode': of, ...more });
  const both = mode('both');
  const web = event('ReplicaSet', 'web');
  const theirs = event('DaemonSet', 'theirs');
  const rows: [what: string, given: JsonObject, flags: Flags, left: string, told: RegExp | undefined][] = [
    ['of a ReplicaSet', web, both, 'tolerations gate', /archaware leaves it out of the next pods/],
    ['of a Job', event('Job', 'once'), both, 'tolerations gate', /leaves it out/],
    ['in a mode without taints', web, mode('affinity'), 'gate', /names scheduling gates, which/],
    ['with refused: keep', web, mode('both', { 'placement.refused': 'keep' }), 'tolerations gate', /goes on adding it/],
    ['of a DaemonSet of ours', event('DaemonSet', 'ours'), mode('taints'), 'tolerations', /it stays in the template/],
    ['of a DaemonSet without any, without the webhook', theirs, mode('taints'), '', undefined],
    ['of a DaemonSet without any, with the webhook', theirs, both, 'tolerations', /leaves it out/],
    ['of a ReplicaSet, without the webhook', web, mode('taints'), '', undefined],
    ['for a quota', event('ReplicaSet', 'web', 'exceeded quota: small'), both, '', undefined],
  ];
  for (const [what, given, flags, left, told] of rows) {
    it(`notices a pod ${what}: ${left || 'nothing'}`, async () => {
      const found = await arriving(given, flags);
      expect(found.left).to.equal(left);
      expect(found.told).to.have.length(told === undefined ? 0 : 1);
      if (told !== undefined)
        expect(found.told[0])
          .to.match(/^RefusedByPolicy: /)
          .and.match(told);
    });
  }

  it('leaves namespaces alone that archaware leaves alone', async () => {
    const { left } = await arriving(web, both, { labels: { 'archaware.dev/ignore': 'true' } });
    expect(left).to.equal('');
  });

  it('says nothing on a replica that does not lead, and leaves the part out there, too', async () => {
    const { left, told } = await arriving(web, both, { leads: false });
    expect([left, told]).to.deep.equal(['tolerations gate', []]);
  });

  it('does not run where nothing is added to a new pod', async () => {
    for (const flags of [mode('observe'), { loops: 'nodes,pods' }]) {
      expect((await arriving(web, flags)).isWatched).to.equal(false);
    }
  });
});
