import { expect } from 'chai';
import { at, objects, text } from '../simulator/json.ts';
import { PODS, type Product, tolerated } from '../support/product.ts';
import { taintsOf } from '../support/world.ts';

const SET = '/apis/apps/v1/namespaces/default/daemonsets/agent';

/** Runs `clean` in a product, with its result in JSON, and looks at what it left. */
export function cleaning(product: Product) {
  const clean = async (...args: string[]) => {
    const words = ['clean', '--yes', '--output', 'json', '--pods', 'restart', ...args];
    const { code, stdout, stderr } = await product.asAdmin(words);
    const result: unknown = stdout === '' ? {} : JSON.parse(stdout);
    const named = (field: string) => objects(at(result, field)).map(({ kind, name }) => `${text(kind)} ${text(name)}`);
    return { code, stderr, left: named('left'), kept: named('kept'), removed: at(result, 'removed') };
  };
  const nothingLeft = async () => {
    for (const node of await product.list('/api/v1/nodes')) expect(taintsOf(node)).to.deep.equal([]);
    for (const pod of await product.list(PODS)) expect(tolerated(pod.spec)).to.deep.equal([]);
    expect(tolerated(at(await product.get(SET), 'spec', 'template', 'spec'))).to.deep.equal([]);
    const shown = JSON.stringify(
      [await product.list('/api/v1/nodes'), await product.get(SET)],
      (key, value: unknown) => (key === 'managedFields' ? undefined : value),
    );
    expect(shown).to.not.contain('archaware.dev/');
  };
  return { clean, nothingLeft };
}
