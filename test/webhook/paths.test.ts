import { expect } from 'chai';
import { createPaths, maySwitch, replicasAlike, type Switching } from '../../src/webhook/paths.ts';

describe('whether the leader may write another path', () => {
  const calm: Switching = {
    isCalled: true,
    wasSeen: false,
    knownForMs: 30_000,
    leadingForMs: 0,
    replicas: 'alike',
  };
  const rows: [given: string, changed: Partial<Switching>, may: boolean][] = [
    ['all replicas are of one template and know it', {}, true],
    ['a rollout is under way', { replicas: 'mixed', leadingForMs: 1e9 }, false],
    ['some may not have read the Secret again', { knownForMs: 29_999 }, false],
    ['the replicas cannot be seen', { replicas: 'unknown', leadingForMs: 59_999 }, false],
    ['the replicas cannot be seen, for a minute', { replicas: 'unknown', leadingForMs: 60_000 }, true],
    ['nobody calls yet', { isCalled: false, knownForMs: 0, replicas: 'mixed' }, true],
    ['somebody else changed it', { wasSeen: true, knownForMs: 0, replicas: 'mixed' }, true],
  ];
  for (const [given, changed, may] of rows) {
    it(`${given}: ${may ? 'yes' : 'no'}`, () => expect(maySwitch({ ...calm, ...changed })).to.equal(may));
  }
});

describe('whether all replicas have the same template', () => {
  const pod = (name: string, hash: string, more: { namespace?: string; phase?: string; app?: string } = {}) => ({
    name,
    namespace: more.namespace ?? 'archaware',
    phase: more.phase ?? 'Running',
    labels: { 'app.kubernetes.io/name': more.app ?? 'archaware-controller', 'pod-template-hash': hash },
  });
  const rows: [given: string, pods: ReturnType<typeof pod>[], expected: string][] = [
    ['both are', [pod('own', 'a'), pod('other', 'a')], 'alike'],
    ['an old one is left', [pod('own', 'a'), pod('other', 'b')], 'mixed'],
    ['one has not started yet', [pod('own', 'a'), pod('other', 'b', { phase: 'Pending' })], 'mixed'],
    ['one has ended', [pod('own', 'a'), pod('other', 'b', { phase: 'Failed' })], 'alike'],
    ['others are elsewhere', [pod('own', 'a'), pod('other', 'b', { namespace: 'x' })], 'alike'],
    ['others are of another program', [pod('own', 'a'), pod('other', 'b', { app: 'x' })], 'alike'],
    ['the own one is not among them', [pod('other', 'a')], 'unknown'],
  ];
  for (const [given, pods, expected] of rows) {
    it(`${given}: ${expected}`, () => expect(replicasAlike(pods, 'archaware', 'own')).to.equal(expected));
  }
});

describe('the paths that are served', () => {
  const calling = (...paths: (string | undefined)[]) => ({
    webhooks: paths.map((path) => ({ clientConfig: { service: { name: 's', namespace: 'n', path } } })),
  });
  const SECRET = '/mutate/abc';
  const ALL = [SECRET, '/mutate', '/', '/x'];
  const rows: [given: string, wanted: string | undefined, seen: Parameters<typeof calling>[0][][], served: string[]][] =
    [
      ['nothing was seen', SECRET, [], [SECRET]],
      ['callers use it', SECRET, [[SECRET, SECRET]], [SECRET]],
      ['callers use that of an earlier version', SECRET, [['/mutate']], [SECRET, '/mutate', '/']],
      ['one caller uses another', SECRET, [[SECRET, '/x']], [SECRET, '/', '/x']],
      ['callers use none', SECRET, [[undefined]], [SECRET, '/']],
      ['callers used another a moment ago', SECRET, [['/mutate'], [SECRET]], [SECRET, '/mutate']],
      ['there is no secret', undefined, [['/mutate']], ['/mutate', '/']],
      ['there is no secret, and nothing was seen', undefined, [], ['/']],
    ];
  for (const [given, wanted, seen, served] of rows) {
    it(`${given}: ${served}`, () => {
      const paths = createPaths(
        () => wanted,
        () => 0,
      );
      for (const called of seen) paths.saw(calling(...called));
      expect(ALL.filter(paths.isServed)).to.deep.equal(served);
    });
  }
});
