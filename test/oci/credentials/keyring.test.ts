import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { createKeyring, type ReadSecret } from '../../../src/oci/credentials/keyring.ts';
import { ImageError } from '../../../src/oci/errors.ts';
import { withDeadline } from '../../../src/oci/http/transport.ts';

describe('the keyring', () => {
  const access = (...pullSecrets: string[]) => ({ namespace: 'ns', pullSecrets, always: false });
  const secret: ReadSecret = {
    name: 'a',
    type: 'kubernetes.io/dockercfg',
    data: { '.dockercfg': Buffer.from('{"r.test": {"username": "u", "password": "p"}}').toString('base64') },
  };

  it('reads and parses the secrets of a pod once for all of its images, and adds one listener to their signal', async () => {
    let reads = 0;
    let finish = () => {};
    const keyring = createKeyring({
      async pullSecrets() {
        reads++;
        await new Promise<void>((resolve) => (finish = resolve));
        return [secret];
      },
    });
    const { signal } = new AbortController();
    const opens = Array.from({ length: 2_000 }, () => keyring.open(access('a'), signal));
    expect(getEventListeners(signal, 'abort')).to.have.lengthOf(1);
    finish();
    const keys = await Promise.all(opens);
    expect(reads).to.equal(1);
    expect(new Set(keys.flatMap((each) => each.fingerprints('r.test/x')))).to.have.property('size', 1);
    expect(getEventListeners(signal, 'abort')).to.have.lengthOf(0);
  });

  it('fails for a while if secrets cannot be read, and reads them again for the next lookup', async () => {
    let fails = true;
    const keyring = createKeyring({
      async pullSecrets() {
        if (fails) throw new Error('too many Secrets of namespace ns are read at once');
        return [secret];
      },
    });
    const { signal } = new AbortController();
    const error = await keyring.open(access('a'), signal).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(ImageError).and.to.include({ code: 'unavailable', temporary: true });
    fails = false;
    expect((await keyring.open(access('a'), signal)).fingerprints('r.test/x')).to.have.lengthOf(1);
  });
});

describe('thousands of deadlines under one signal', () => {
  it('add one listener to it', async () => {
    const end = new AbortController();
    const waiting = Array.from({ length: 2_000 }, () =>
      withDeadline(
        60_000,
        end.signal,
        () => new Error('late'),
        (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      ).catch((error: unknown) => error),
    );
    expect(getEventListeners(end.signal, 'abort')).to.have.lengthOf(1);
    end.abort('enough');
    expect(new Set(await Promise.all(waiting))).to.deep.equal(new Set(['enough']));
  });
});
