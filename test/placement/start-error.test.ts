import { expect } from 'chai';
import type { JsonObject } from '../../src/placement/json.ts';
import { readPod } from '../../src/placement/pod.ts';
import { readStartError } from '../../src/placement/start-error.ts';

const GO = 'exec /app: exec format error';
const CRUN = 'exec container process `/app`: Exec format error';
const GVISOR =
  'failed to create containerd task: failed to start sandbox: starting container: failed to load /app: exec format error: unknown';
const crashing = (message: unknown, reason = 'Error') => ({
  state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s restarting failed container=app' } },
  lastState: { terminated: { exitCode: 255, reason, message } },
});
const of = (...containers: readonly JsonObject[]): JsonObject => ({
  containerStatuses: containers.map((container, index) => ({ name: `c${index}`, ...container })),
});

describe('a container that died with an exec format error', () => {
  const rows: [given: string, status: JsonObject, expected: string | undefined][] = [
    ['runc, its log in the status (FallbackToLogsOnError)', of(crashing(GO)), 'c0'],
    ['runc of old', of(crashing('standard_init_linux.go:228: exec user process caused: exec format error')), 'c0'],
    ['crun', of(crashing(CRUN)), 'c0'],
    ['a runtime that fails the start', of(crashing(GVISOR, 'StartError')), 'c0'],
    ['one that waits', of({ state: { waiting: { reason: 'RunContainerError', message: GVISOR } } }), 'c0'],
    ['one that is terminated', of({ state: { terminated: { reason: 'StartError', message: GO } } }), 'c0'],
    ['one that says so in its reason', of({ state: { waiting: { reason: GO } } }), 'c0'],
    ['one that runs again', of({ ...crashing(GO), state: { running: {} } }), undefined],
    ['the second container', of({ state: { running: {} } }, crashing(GO)), 'c1'],
    ['an init container first', { ...of(crashing(GO)), initContainerStatuses: [{ name: 'i', ...crashing(GO) }] }, 'i'],
    ['an ephemeral container', { ephemeralContainerStatuses: [{ name: 'e', ...crashing(GO) }] }, undefined],
    ['another message', of(crashing('permission denied')), undefined],
    ['no message: runc says it to the log alone', of(crashing(undefined)), undefined],
    ['a message that is none', of(crashing({ text: GO })), undefined],
    ['states that are none', of({ state: GO, lastState: [GO] }), undefined],
    ['containers that are none', { containerStatuses: [GO, null, 7] }, undefined],
    ['a list that is none', { containerStatuses: GO, initContainerStatuses: {} }, undefined],
    ['no status', {}, undefined],
  ];
  for (const [given, status, expected] of rows) {
    it(`${given}: ${expected ?? 'none'}`, () => expect(readStartError(status)).to.equal(expected));
  }

  it('is read with every event of a pod, also of the same generation', () => {
    const metadata = { uid: 'u', generation: 1 };
    const before = readPod({ metadata, status: {} });
    const died = readPod({ metadata, status: of(crashing(GO)) }, before);
    expect([before.startError, died.startError]).to.deep.equal([undefined, 'c0']);
    expect(readPod({ metadata, status: {} }, died).startError).to.equal(undefined);
  });
});
