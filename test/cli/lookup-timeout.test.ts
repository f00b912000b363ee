import { expect } from 'chai';
import { startTestRegistry } from '../simulator/registry/registry.ts';
import { runInProcess } from '../support/in-process.ts';
import { type Product, startProduct, workload } from '../support/product.ts';

describe('a registry that fails for the moment', () => {
  let product: Product;
  before(async () => {
    product = await startProduct({ speed: 20 });
    await product.cluster.createPod({ name: 'web-1', images: [product.image('web', ['arm64'])] });
  });
  beforeEach(() => product.registry.clearFaults());
  after(() => product.stop());

  const image = () => `${product.registry.host}/web:1`;
  const manifest = () => workload('Deployment', 'web', [image()]);
  const commands: readonly (readonly [words: readonly string[], knows: RegExp, doesNot: RegExp])[] = [
    [['inspect', 'IMAGE'], /linux\/arm64/, /error: /],
    [['check', '-f', '-', '--on', 'arm64'], /1 workload can run on arm64/, /could not be looked up/],
    [['report', '--to', 'arm64'], /100 % of the replicas can run/, /1 image was not looked up/],
    [['explain', 'web-1', '-n', 'default'], /linux\/arm64/, /could not|rate-limited|unavailable/],
    [['plan'], /tolerate\s+arm64/, /Unknown images/],
  ];
  const run = (words: readonly string[], ...more: readonly string[]) =>
    product.command([...words.map((word) => (word === 'IMAGE' ? image() : word)), ...more], { input: manifest() });

  for (const [words, knows, doesNot] of commands) {
    const name = words[0] ?? '';
    for (const [fault, code] of [
      [{ kind: 'status', status: 429, retryAfter: '2' }, 'rate-limited'],
      [{ kind: 'status', status: 503 }, 'unavailable'],
      [{ kind: 'reset' }, 'unavailable'],
    ] as const) {
      it(`is asked again by ${name} (${'status' in fault ? fault.status : fault.kind})`, async () => {
        product.registry.inject(fault, { path: /manifests/, times: 2 });
        const { stdout, stderr } = await run(words);
        expect(stdout).to.match(knows);
        expect(stdout).not.to.match(doesNot);
        expect(stderr).to.match(
          new RegExp(
            `^waiting for ${product.registry.host} \\(${code}, again in \\d+ s\\): 0 of 1 images looked up$`,
            'm',
          ),
        );
      });
    }

    it(`is asked once by ${name} --lookup-timeout 0s, and what is not known is named`, async () => {
      product.registry.inject({ kind: 'status', status: 503 });
      const { stdout, stderr } = await run(words, '--lookup-timeout', '0s');
      expect(stdout).to.match(doesNot);
      expect(stdout).not.to.match(knows);
      expect(stderr).not.to.contain('waiting for');
    });

    it(`is given up by ${name} when the time is over`, async () => {
      product.registry.inject({ kind: 'status', status: 429, retryAfter: '2' });
      const { stdout } = await run(words, '--lookup-timeout', '5s');
      expect(stdout).to.match(doesNot);
    });

    it(`makes ${name} refuse a time that is no duration`, async () => {
      const { code, stderr } = await runInProcess([...words, '--lookup-timeout', 'soon']);
      expect([code, stderr]).to.deep.equal([
        3,
        'archaware: --lookup-timeout: got "soon", expected a duration, such as 30s or 2m\n',
      ]);
    });
  }

  it('is given up after 15 s if its token service cannot be reached from here', async () => {
    const tokens = await startTestRegistry();
    await tokens.stop();
    const registry = await startTestRegistry({ auth: 'bearer', realm: `http://${tokens.host}/token` });
    const insecure = ['--registries.insecure', `${registry.host},${tokens.host}`];
    const began = product.clock.monotonic();
    const { code, stdout } = await runInProcess(['inspect', `${registry.host}/web:1`, ...insecure], {
      clock: product.clock,
    });
    await registry.stop();
    expect(code).to.equal(2);
    expect(stdout).to.contain('could not be reached');
    expect(product.clock.monotonic() - began).to.be.below(40_000);
  });

  it('does not make a ready cluster look unready: every image of a registry with a limit is waited for', async () => {
    const images = Array.from({ length: 40 }, (_, index) => product.image(`many/i${index}`, ['amd64', 'arm64']));
    const input = images.map((each, index) => workload('Deployment', `d${index}`, [each])).join('\n---\n');
    // Every 8th request is refused, and the registry asks for a pause.
    for (const digit of [3, 7]) {
      product.registry.inject(
        { kind: 'status', status: 429, retryAfter: '1' },
        { path: new RegExp(`many/i\\d?${digit}/`), times: 6 },
      );
    }
    const { stdout, stderr } = await product.command(['report', '-f', '-', '--to', 'arm64'], { input });
    expect(stdout).to.contain('100 % of the replicas can run there today (40 of 40 replicas, 40 of 40');
    expect(stderr).to.contain(`waiting for ${product.registry.host} (rate-limited, again in `);
  });
});
