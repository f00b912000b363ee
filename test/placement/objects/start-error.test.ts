import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import { readBroken } from '../../../src/placement/objects/containers.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';

const GO = 'exec /app: exec format error';
const GVISOR =
  'failed to create containerd task: failed to start sandbox: starting container: failed to load /app: exec format error: unknown';
const NO_MATCH =
  'rpc error: code = NotFound desc = get image config descriptor: no match for platform in manifest sha256:41c7: not found';
const crashing = (message: unknown, reason = 'Error', exitCode = 255) => ({
  state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container=app' } },
  lastState: { terminated: { exitCode, reason, message } },
});
const waiting = (reason?: string, message?: string) => ({ state: { waiting: { reason, message } } });
const ended = (exitCode: unknown, message?: string) => ({ state: { terminated: { exitCode, message } } });
const of = (...containers: readonly JsonObject[]): JsonObject => ({
  containerStatuses: containers.map((container, index) => ({ name: `c${index}`, ...container })),
});

describe('what the status of a pod shows', () => {
  // What runc, crun, shells and containerd say, word for word, is in real-texts.test.ts.
  const rows: [given: string, status: JsonObject, expected: string][] = [
    ['a script without #!: the same text as a wrong architecture', of(crashing(GO, 'Error', 1)), 'c0 format'],
    ['a runtime that fails the start', of(crashing(GVISOR, 'StartError')), 'c0 format'],
    ['one that waits', of(waiting('RunContainerError', GVISOR)), 'c0 format'],
    ['one that is terminated', of(ended(1, GO)), 'c0 format'],
    ['one that says so in its reason', of(waiting(GO)), 'c0 format'],
    ['one that runs again', of({ ...crashing(GO), state: { running: {} } }), ''],
    ['no message: runc says it to the log alone', of(crashing(undefined)), 'c0 failing'],
    ['another message', of(crashing('permission denied')), 'c0 failing'],
    ['a message that is an object', of(crashing({ text: GO })), 'c0 failing'],
    [
      'CRI-O, an index without the platform',
      of(
        waiting(
          'ErrImagePull',
          'choosing image instance: no image found in image index for architecture "arm64", variant "v8", OS "linux"',
        ),
      ),
      'c0 no-match',
    ],
    [
      'Docker, an index without the platform',
      of(waiting('ErrImagePull', 'no matching manifest for linux/arm64/v8 in the manifest list entries')),
      'c0 no-match',
    ],
    ['a text about platforms that the container itself wrote', of(crashing(NO_MATCH)), 'c0 failing'],
    ['a Secret that is missing', of(waiting('CreateContainerConfigError', 'secret "x" not found')), 'c0 failing'],
    ['a container that is created', of(waiting('ContainerCreating')), ''],
    ['a container that waits for init containers', of(waiting('PodInitializing')), ''],
    ['a container that waits without a reason', of(waiting()), ''],
    ['a container that ended well', of(ended(0)), ''],
    ['a container that ended with an error', of(ended(3)), 'c0 failing'],
    ['an exit code that is a text', of(ended('3')), ''],
    ['the second container', of({ state: { running: {} } }, crashing(GO)), 'c1 format'],
    [
      'an init container first',
      { ...of(crashing(undefined)), initContainerStatuses: [{ name: 'i', ...crashing(GO) }] },
      'i format, c0 failing',
    ],
    ['an ephemeral container', { ephemeralContainerStatuses: [{ name: 'e', ...crashing(GO) }] }, ''],
    ['a pod that is over', { phase: 'Failed', ...of(ended(1, GO)) }, ''],
    ['states that are lists or texts', of({ state: GO, lastState: [GO] }), ''],
    ['containers that are texts', { containerStatuses: [GO, null, 7] }, ''],
    ['lists that are texts', { containerStatuses: GO, initContainerStatuses: {} }, ''],
    ['no status', {}, ''],
  ];
  for (const [given, status, expected] of rows) {
    it(`${given}: ${expected || 'nothing'}`, () => {
      const broken = readBroken({}, status) ?? [];
      const told = broken.map(({ name, trouble }) => `${name} ${trouble}`).join(', ');
      expect(told.replaceAll('exec-format-error', 'format').replaceAll('no-match-for-platform', 'no-match')).to.equal(
        expected,
      );
    });
  }
});

describe('a message as long as a request may be', () => {
  /** Returns the length of the longest text that an expression was tried on meanwhile. */
  function longestSeen(act: () => void): number {
    const { exec } = RegExp.prototype;
    let longest = 0;
    RegExp.prototype.exec = function (this: RegExp, text: string) {
      longest = Math.max(longest, text.length);
      return exec.call(this, text);
    };
    try {
      act();
    } finally {
      RegExp.prototype.exec = exec;
    }
    return longest;
  }

  for (const text of [`${'/'.repeat(300_000)}: exec format error`, `exec "${'/x '.repeat(100_000)}": no match for`]) {
    for (const status of [
      crashing(text),
      crashing('', text),
      waiting('StartError', text),
      waiting(text),
      ended(1, text),
    ]) {
      it(`reaches no expression: ${text.slice(-25)}, ${Object.keys(status.state).join()}`, () => {
        const spec = { containers: [{ name: 'c0', image: 'x', volumeMounts: [{ mountPath: '/data' }] }] };
        const longest = longestSeen(() => readBroken(spec, of(status)));
        expect(longest).to.be.within(1, 1024);
      });
    }
  }

  it('still says at its end that the program was refused, or that there is no platform', () => {
    const command = `exec: "${'x'.repeat(100_000)}": `;
    const broken = readBroken({}, of(crashing(command + GO), waiting('ErrImagePull', command + NO_MATCH))) ?? [];
    expect(broken.map(({ trouble }) => trouble)).to.deep.equal(['exec-format-error', 'no-match-for-platform']);
  });
});

describe('what was pulled for a broken container', () => {
  const DIGEST = `sha256:${'a'.repeat(64)}`;
  const rows: [image: string, imageID: string, expected: string | undefined, more?: JsonObject][] = [
    ['nginx', `docker.io/library/nginx@${DIGEST}`, `nginx@${DIGEST}`],
    ['nginx:1.27', `docker-pullable://nginx@${DIGEST}`, `nginx@${DIGEST}`],
    ['registry:5000/team/app:1', `registry:5000/team/app@${DIGEST}`, `registry:5000/team/app@${DIGEST}`],
    ['registry:5000/team/app', `registry:5000/team/app@${DIGEST}`, `registry:5000/team/app@${DIGEST}`],
    [`app:1@sha256:${'b'.repeat(64)}`, `docker.io/library/app@${DIGEST}`, `app@${DIGEST}`],
    // Another tenant's repository with the same digest: this pod may not read it.
    ['mine/app:1', `docker.io/theirs/app@${DIGEST}`, `mine/app@${DIGEST}`],
    ['app:1', `docker.io/library/app@sha512:${'c'.repeat(128)}`, `app@sha512:${'c'.repeat(128)}`],
    ['app:1', DIGEST, undefined],
    ['app:1', `docker://${DIGEST}`, undefined],
    ['app:1', 'docker.io/library/app@sha256:short', undefined],
    ['app:1', '', undefined],
    ['app:1', `docker.io/library/app@${DIGEST}`, undefined, { imagePullPolicy: 'Never' }],
  ];
  for (const [image, imageID, expected, more = {}] of rows) {
    it(`${image} with the imageID "${imageID}"${more.imagePullPolicy ? ', never pulled' : ''}: ${expected ?? 'unknown'}`, () => {
      const [broken] = readBroken({ containers: [{ name: 'c0', image, ...more }] }, of({ imageID, ...ended(1) })) ?? [];
      expect([broken?.image, broken?.pulled?.image]).to.deep.equal([image, expected]);
    });
  }

  it('keeps the name of the image ID if the spec has no such container', () => {
    const [broken] = readBroken({}, of({ imageID: `docker.io/x/y@${DIGEST}`, ...ended(1) })) ?? [];
    expect(broken?.pulled).to.deep.equal({ image: `docker.io/x/y@${DIGEST}`, pullPolicy: 'IfNotPresent' });
  });
});

describe('a pod that is kept', () => {
  const metadata = { uid: 'u', generation: 1 };

  it('shows its broken containers with every event, also of the same generation', () => {
    const before = readPod({ metadata, status: {} });
    const died = readPod({ metadata, status: of(crashing(GO)) }, before);
    expect([before.broken, died.broken?.[0]?.name]).to.deep.equal([undefined, 'c0']);
    expect(readPod({ metadata, status: {} }, died).broken).to.equal(undefined);
  });

  it('keeps the error of the last pull while the kubelet waits for the next one, until that has another result', () => {
    const missing = readPod({ metadata, status: of(waiting('ErrImagePull', NO_MATCH)) });
    // Older kubelets report it without the cause.
    const backsOff = readPod(
      { metadata, status: of(waiting('ImagePullBackOff', 'Back-off pulling image "x"')) },
      missing,
    );
    expect(backsOff.broken).to.equal(missing.broken);
    const denied = readPod({ metadata, status: of(waiting('ErrImagePull', 'denied')) }, backsOff);
    expect(denied.broken?.[0]?.trouble).to.equal('failing');
    const late = `Back-off pulling image "x": ErrImagePull: denied`;
    const says = readPod({ metadata, status: of(waiting('ImagePullBackOff', late)) }, missing);
    expect(says.broken?.[0]?.trouble).to.equal('failing');
  });

  it('keeps the same list object if an event changes nothing in it', () => {
    const one = readPod({ metadata, status: of(crashing(GO)) });
    const again = readPod({ metadata: { ...metadata, generation: 2 }, status: of(crashing(GO, 'StartError')) }, one);
    expect(again.broken).to.equal(one.broken);
    const another = readPod({ metadata: { uid: 'v', generation: 1 }, status: of(crashing(GO)) }, one);
    expect(another.broken).not.to.equal(one.broken);
    expect(another.broken).to.deep.equal(one.broken);
  });
});
