import { expect } from 'chai';
import type { JsonObject } from '../simulator/json.ts';
import { differences, foreignOf, isMadeByUs } from './support/foreign.ts';
import { KIND_LABEL, wrongTaints, wrongTolerations } from './support/rules.ts';

const toleration = (value: string) => ({ key: 'supported-arch', operator: 'Equal', value, effect: 'NoSchedule' });
const theirs = { key: 'dedicated', operator: 'Exists' };

const pod = (metadata: JsonObject, spec: JsonObject, more: JsonObject = {}): JsonObject => ({
  metadata: { name: 'web', namespace: 'shop', uid: 'u', ...metadata },
  spec,
  ...more,
});
const seen = (item: JsonObject) => new Map([['pods shop/web', foreignOf(item)]]);
const plain = pod({}, { containers: [{ image: 'a' }], tolerations: [theirs] });

describe('what is compared before and after a fault', () => {
  const rows: readonly [what: string, after: JsonObject | undefined, found: string[]][] = [
    [
      'our toleration, our record, the binding, the status and the version',
      pod(
        { resourceVersion: '9', annotations: { 'archaware.dev/managed': '{}' } },
        { containers: [{ image: 'a' }], tolerations: [theirs, toleration('amd64')], nodeName: 'n' },
        { status: { phase: 'Running' } },
      ),
      [],
    ],
    [
      'a toleration of others that is lost',
      pod({}, { containers: [{ image: 'a' }], tolerations: [toleration('amd64')] }),
      ['pods shop/web: .spec.tolerations was [{"key":"dedicated","operator":"Exists"}], is []'],
    ],
    [
      'a label of others',
      pod({ labels: { app: 'x' } }, { containers: [{ image: 'a' }], tolerations: [theirs] }),
      ['pods shop/web: .metadata.labels.app was undefined, is "x"'],
    ],
    ['a pod that is gone', undefined, ['pods shop/web is gone']],
    [
      'a pod that was deleted and made again',
      pod({ uid: 'v' }, { containers: [{ image: 'a' }] }),
      ['pods shop/web is gone'],
    ],
  ];
  for (const [what, after, found] of rows) {
    it(`${found.length === 0 ? 'leaves out' : 'shows'} ${what}`, () => {
      expect(differences(seen(plain), after === undefined ? new Map() : seen(after), () => false)).to.deep.equal(found);
    });
  }

  it('leaves out what the fault itself removes', () => {
    expect(differences(seen(plain), new Map(), (key) => key === 'pods shop/web')).to.deep.equal([]);
  });

  it('knows what archaware has written', () => {
    expect(isMadeByUs(pod({ managedFields: [{ manager: 'archaware-controller' }] }, {}))).to.equal(true);
    expect(isMadeByUs(pod({ managedFields: [{ manager: 'kubectl' }] }, {}))).to.equal(false);
  });
});

describe('the state that the rules say', () => {
  const wrong = (kind: string, ...tolerations: readonly object[]) => {
    const item = pod({ labels: { [KIND_LABEL]: kind } }, { tolerations });
    return wrongTolerations(item, item.spec, { [KIND_LABEL]: kind });
  };

  it('has exactly the tolerations that the images allow', () => {
    expect(wrong('both', toleration('arm64'), theirs, toleration('amd64'))).to.equal(undefined);
    expect(wrong('missing')).to.equal(undefined);
    expect(wrong('unknown to these tests', toleration('amd64'))).to.equal(undefined);
    expect(wrong('both', toleration('amd64'))).to.match(
      /shop\/web \(both\) tolerates amd64:NoSchedule, expected amd64/,
    );
    expect(wrong('amd64', toleration('amd64'), toleration('amd64'))).to.match(/tolerates amd64:NoSchedule amd64/);
    expect(wrong('ignored', toleration('amd64'))).to.match(/expected nothing$/);
  });

  it('has the taint of its architecture on each node, once', () => {
    const node = (...taints: readonly object[]) => ({
      metadata: { name: 'n' },
      spec: { taints },
      status: { nodeInfo: { architecture: 'arm64' } },
    });
    const taint = { key: 'supported-arch', value: 'arm64', effect: 'NoSchedule' };
    expect(wrongTaints(node({ key: 'dedicated', effect: 'NoSchedule' }, taint))).to.equal(undefined);
    expect(wrongTaints(node())).to.equal('node n (arm64) has no taint');
    expect(wrongTaints(node(taint, taint))).to.match(/has arm64:NoSchedule arm64:NoSchedule/);
  });
});
