import { expect } from 'chai';
import { at } from '../simulator/json.ts';
import { ours } from '../support/objects.ts';
import { type Product, startProduct, tolerated, workload } from '../support/product.ts';

// archaware-controller up to 0.1 looked for nodes of the architecture wasm, whatever RuntimeClass a pod had. No node
// has that.
describe('a pod of WebAssembly', () => {
  let product: Product;
  let wasm: string;
  const CLASS = { runtimeClassName: 'wasmtime' };
  beforeEach(async () => {
    product = await startProduct();
    wasm = product.image('wasm', ['wasi/wasm']);
  });
  afterEach(() => product.stop());

  it('goes to every node that its RuntimeClass allows, and so do pods of a DaemonSet', async () => {
    await product.cluster.createPod({ name: 'a', images: [wasm], spec: CLASS });
    await product.cluster.apply(workload('DaemonSet', 'agent', [wasm], { template: CLASS }));
    await product.run();
    await product.eventuallyTolerates('default', 'a', ours('amd64', 'arm64'));
    await product.eventually('the template to tolerate both', async () => {
      const set = await product.get('/apis/apps/v1/namespaces/default/daemonsets/agent');
      return tolerated(at(set, 'spec', 'template', 'spec')).length === 2;
    });
  });

  it('is held without a RuntimeClass, and an Event says so, and so do plan and explain', async () => {
    await product.cluster.createPod({ name: 'a', images: [wasm] });
    await product.run();
    const missing =
      /WebAssembly without a RuntimeClass \(set spec\.runtimeClassName\): \S+\/wasm:1; \S+\/wasm:1 \(wasi\/wasm\)/;
    await product.eventuallyEvent('default', 'NoCommonArchitecture', missing);
    expect((await product.command(['plan'])).stdout).to.match(missing);
    expect((await product.command(['explain', 'a'])).stdout).to.match(/next +set runtimeClassName to a RuntimeClass/);
  });

  it('needs a RuntimeClass, says inspect', async () => {
    const { stdout } = await product.command(['inspect', wasm]);
    expect(stdout).to.match(
      /wasm:1 +wasi\/wasm .*\n\nNotes\.\n.*\n\S+wasm:1 +WebAssembly: its pods need a RuntimeClass/,
    );
  });
});
