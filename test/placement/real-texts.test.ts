import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import type { ImageAnswer } from '../../src/placement/images.ts';
import { readPod } from '../../src/placement/objects/pod.ts';
import { findWrongNode, whatIsKnown, whatWasPulled } from '../../src/placement/wrong-node/judge.ts';
import { whyNotEvicted } from '../../src/placement/wrong-node/may-evict.ts';
import { digest, known, pending, settings } from './objects.ts';

const [AMD, ARM, BOTH] = [known('linux/amd64'), known('linux/arm64'), known('linux/amd64,linux/arm64')];

/** A container that was started and died; the API server has the message only with FallbackToLogsOnError. */
const died = (exitCode: number, message?: string): JsonObject => ({
  imageID: `docker.io/library/app@${digest('app')}`,
  state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container=app' } },
  lastState: { terminated: { exitCode, reason: 'Error', ...(message === undefined ? {} : { message }) } },
});
const NO_MATCH =
  'rpc error: code = NotFound desc = get image config descriptor: no match for platform in manifest sha256:41c7: not found';
const waits = (reason: string, message: string): JsonObject => ({
  imageID: '',
  state: { waiting: { reason, message } },
});

const NO_COMMAND = 'busybox, where the first bytes are no command';
const ELF = '\x7fELF\x02\x02\x01\x02\x16\x01';
/** As a node of amd64 said it: Kubernetes 1.36.3, containerd 2.4.2, runc 1.1.5 and 1.5.1, crun 1.8.1, busybox 1.35, dash 0.5.12, bash 5.2. */
const TEXTS: readonly [by: string, exitCode: number, text: string][] = [
  ['runc', 255, 'exec /app: exec format error'],
  ['runc 1.1', 1, 'exec /app: exec format error\n'],
  ['crun', 1, 'exec container process `/app`: Exec format error'],
  ['dash', 126, 'sh: 1: /app: Exec format error'],
  ['bash', 126, 'bash: line 1: /app: cannot execute binary file: Exec format error'],
  ['busybox', 2, `/app: line 1: ${ELF}: not found\n/app: line 2: syntax error: unexpected word (expecting ")")`],
  ['env of busybox and of coreutils', 2, `/app: 1: ${ELF}: not found\n/app: 5: Syntax error: "(" unexpected`],
  [NO_COMMAND, 2, '/app: line 2: syntax error: unexpected word (expecting ")")'],
];

const namesOf = (image: string) => [image];

/** The verdict for a pod on an amd64 node. `pulled`: the platforms behind the digest in its status. */
function verdictOf(status: JsonObject, tag: ImageAnswer, pulled: ImageAnswer = tag): string {
  const pod = readPod({
    metadata: {
      ownerReferences: [{ kind: 'ReplicaSet', apiVersion: 'apps/v1', name: 'web', uid: 'r', controller: true }],
    },
    spec: { containers: [{ name: 'app', image: 'app:1' }] },
    status: { containerStatuses: [{ name: 'app', ...status }] },
  });
  const answerOf = ({ image }: { image: string }) =>
    image === 'app:1' ? tag : image === `app@${digest('app')}` ? pulled : pending;
  const tags = whatIsKnown(pod, settings(), namesOf, answerOf);
  const place = findWrongNode(pod, 'amd64', tags, whatWasPulled(pod, settings(), namesOf, answerOf));
  if (place === undefined) return 'nothing';
  const taints = [{ key: 'supported-arch', value: 'amd64', effect: 'NoSchedule' }];
  const around = { architectures: ['amd64', 'arm64'], nodes: [], daemonTolerations: undefined };
  const node = { name: 'n1', taints, architecture: 'amd64' };
  const why = whyNotEvicted(pod, place, node, around, settings({ onWrongNode: 'evict' }), undefined);
  return `${place.reason} ${place.verdict}, ${why === undefined ? 'evicted' : 'not evicted'}`;
}

describe('what a real runtime says', () => {
  for (const [by, code, text] of TEXTS) {
    const isFormat = by !== NO_COMMAND;
    it(`${by}, of an image for another architecture: that is a wrong node`, () => {
      const reason = isFormat ? 'exec-format-error' : 'platforms';
      expect(verdictOf(died(code, text), ARM)).to.equal(`${reason} does-not-run, evicted`);
    });

    it(`${by}, of an image that says this one, or a script: the pod is not evicted`, () => {
      const claims = 'exec-format-error says-it-runs, not evicted';
      expect(verdictOf(died(code, text), BOTH)).to.equal(isFormat ? claims : 'nothing');
      expect(verdictOf(died(code, text), ARM, AMD)).to.equal(isFormat ? claims : 'nothing');
    });
  }

  const pulls: readonly [given: string, status: JsonObject, tag: ImageAnswer, expected: string][] = [
    ['of an index without the platform', waits('ErrImagePull', NO_MATCH), ARM, 'platforms does-not-run, evicted'],
    [
      'of the same, between two pulls',
      waits('ImagePullBackOff', `Back-off pulling image "10.77.0.1:5000/x/arm64-index:1": ErrImagePull: ${NO_MATCH}`),
      ARM,
      'platforms does-not-run, evicted',
    ],
    ['of an index that has it by now', waits('ErrImagePull', NO_MATCH), BOTH, 'platforms says-it-runs, not evicted'],
  ];
  for (const [given, status, tag, expected] of pulls)
    it(`${given}: ${expected}`, () => expect(verdictOf(status, tag)).to.equal(expected));

  it('is in docs/operating.md, word for word', async () => {
    const document = await readFile(new URL('../../docs/operating.md', import.meta.url), 'utf8');
    const shown = [...TEXTS.map(([by, , text]) => [by, text]), ['containerd', 'no match for platform in manifest']];
    for (const [by = '', text = ''] of shown.filter(([name]) => !name?.startsWith('env')))
      expect(document, by).to.include(text.split('\n')[0]?.replace(ELF, 'ELF…'));
  });
});
