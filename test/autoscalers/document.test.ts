import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { at, listAt } from '../../hack/cluster/json.ts';
import { nodePoolProblems, readNodePool } from '../../src/analysis/nodes/node-pools.ts';
import { settings } from '../placement/objects.ts';
import { nodePool, two } from './support/pools.ts';

const DOCUMENT = new URL('../../docs/autoscalers.md', import.meta.url);

describe('docs/autoscalers.md', () => {
  it('shows the NodePools that the tests use, and that plan finds nothing wrong with', async () => {
    const text = await readFile(DOCUMENT, 'utf8');
    const [, block = ''] = /```yaml\n(apiVersion: karpenter\.sh\/v1\n[\s\S]*?)```/.exec(text) ?? [];
    const shown = parseAllDocuments(block).map((document) => document.toJS());
    const essence = (pool: unknown) => ({
      name: at(pool, 'metadata', 'name'),
      taints: listAt(pool, 'spec', 'template', 'spec', 'taints'),
      architecture: listAt(pool, 'spec', 'template', 'spec', 'requirements')[0],
    });
    expect(shown.map(essence)).to.deep.equal(two('taints').map((pool) => essence(nodePool(pool))));
    const problems = shown.flatMap((pool) => {
      const read = readNodePool(pool);
      return read === undefined ? ['not read'] : nodePoolProblems(read, settings()).map(({ problem }) => problem);
    });
    expect(problems).to.deep.equal([]);
  });
});
