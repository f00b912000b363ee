import { expect } from 'chai';
import { ApiError } from '../../../src/kube/errors.ts';
import { createDoubt } from '../../../src/kube/watch/doubt.ts';

const POD = { kind: 'Pod', namespace: 'a', name: 'p', action: 'tolerate' } as const;
const NODE = { kind: 'Node', name: 'n', action: 'taint' } as const;

describe('a conflict', () => {
  let seen: string | undefined;
  let real: string | undefined;
  let asked: string[];
  let found: number;
  let pass: () => void;
  let conflicted: ReturnType<typeof createDoubt>;
  beforeEach(() => {
    [seen, real, asked, found, pass] = ['1', '2', [], 0, () => {}];
    conflicted = createDoubt({
      client: {
        async request(_, path) {
          asked.push(path);
          if (real === undefined) throw new ApiError(404, { reason: 'NotFound' }, 'get');
          return { metadata: { resourceVersion: real } };
        },
      },
      clock: { delay: () => new Promise((resolve) => (pass = resolve)) },
      versionOf: () => seen,
      onDead: () => found++,
      signal: new AbortController().signal,
    });
  });
  const over = async () => {
    pass();
    await new Promise((resolve) => setImmediate(resolve));
  };

  it('shows that a watch is dead if it has not shown the other version some seconds later, or the deletion', async () => {
    conflicted(POD);
    await over();
    expect([asked, found]).to.deep.equal([['/api/v1/namespaces/a/pods/p'], 1]);
    real = undefined;
    conflicted(NODE);
    await over();
    expect([asked.at(-1), found]).to.deep.equal(['/api/v1/nodes/n', 2]);
  });

  it('shows nothing if the version moved meanwhile, and nothing is asked', async () => {
    conflicted(POD);
    seen = '2';
    await over();
    expect([asked, found]).to.deep.equal([[], 0]);
  });

  it('shows nothing if the object has the version that the watch has: a webhook may answer 409 for ever', async () => {
    real = '1';
    conflicted(POD);
    await over();
    expect([asked.length, found]).to.deep.equal([1, 0]);
  });

  it('is looked into for one object at a time, and for none that is not watched', async () => {
    conflicted(POD);
    conflicted(NODE);
    await over();
    expect(asked).to.deep.equal(['/api/v1/namespaces/a/pods/p']);
    seen = undefined;
    conflicted(NODE);
    await over();
    expect(asked).to.have.lengthOf(1);
  });
});
