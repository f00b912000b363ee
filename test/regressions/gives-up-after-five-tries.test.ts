import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';
import { createController } from '../../src/kube/controller.ts';
import { indexOf, reply, startResolver, startServer } from '../oci/server.ts';

const TRIES = 20;
const HOUR_MS = 3_600_000;

// archaware-controller (2022) tried a pod five times and then never again.
describe('nothing is given up after five tries', () => {
  it('tries a pod whose writes fail until one succeeds', async () => {
    const end = new AbortController();
    let tries = 0;
    const controller = createController({
      name: 'pod',
      workers: 1,
      // With this value every backoff has no length.
      clock: { ...systemClock, random: () => -2 },
      priorityOf: () => 'urgent',
      onOutcome: () => {},
      async reconcile() {
        tries++;
        if (tries < TRIES) throw new Error('not now');
        return { outcome: 'written' };
      },
    });
    const ended = controller.run(end.signal, end.signal);
    controller.enqueue('default/p');
    while (tries < TRIES) await new Promise((resolve) => setImmediate(resolve));
    end.abort();
    await ended;
    expect(tries).to.equal(TRIES);
  });

  it('looks up an image whose lookups fail until one succeeds', async () => {
    const server = await startServer();
    const harness = startResolver([server.host]);
    const image = `${server.host}/app:v1`;
    const access = { namespace: 'default', pullSecrets: [], always: false };
    try {
      server.on('/v2/app/manifests/v1', reply(503));
      for (let tried = 0; tried < TRIES; tried++) {
        const settled = harness.settled();
        harness.resolver.request(image, access);
        await settled;
        harness.advance(HOUR_MS);
      }
      server.put('app', 'manifests', indexOf('linux/arm64'), { tag: 'v1' });
      const settled = harness.settled();
      harness.resolver.request(image, access);
      await settled;
      expect(harness.resolver.known(image, access)?.platforms).to.deep.equal([{ os: 'linux', architecture: 'arm64' }]);
    } finally {
      harness.stop();
      await server.stop();
    }
  });
});
