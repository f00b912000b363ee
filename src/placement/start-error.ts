import { isObject, type JsonObject, listAt, stringAt } from './json.ts';
import type { PodImage } from './pod.ts';

/**
 * What a container's status says about why it does not run.
 *
 * `exec-format-error`: the kernel refused its program. That proves no wrong architecture: a script without `#!` gives the same
 * text, and so does an image whose manifest names another architecture than its files have. The shells dash and bash use the
 * same words (exit code 126). The shell of busybox, and `env` by way of /bin/sh, read the program as a script instead and end with
 * exit code 2: where the bytes of the program make its first word a command, the text names the magic number of ELF, which only
 * a program that the kernel refused can cause; else there is a syntax error, which proves nothing.
 *
 * `no-match-for-platform`: the runtime found no entry for the node in the image's index, so nothing was pulled. The text
 * comes from the kubelet, but a registry or an image's name can contain it, so it counts only together with what the registry says.
 *
 * `failing`: it waits or ended with an error, for any reason.
 */
export type Trouble = 'exec-format-error' | 'no-match-for-platform' | 'failing';

/** A container that waits for its next start, or ended with an error. */
export type BrokenContainer = {
  readonly name: string;
  /** As the pod's spec names it; empty where the spec has no such container. */
  readonly image: string;
  readonly trouble: Trouble;
  /** What was pulled for it, as `repository@digest`; undefined where the status names no digest of a manifest. */
  readonly pulled: PodImage | undefined;
};

/**
 * What runtimes say of ENOEXEC: Go's text, and strerror's with a capital (crun). runc and crun can say so only to the container's
 * own stderr, as they have given every other channel away by then (opencontainers/runc#3926, #4170: "exec /app: exec format
 * error", exit code 255, or 1 before runc 1.2; crun: "exec container process `/app`: Exec format error"): the status has it where the
 * container's terminationMessagePolicy is FallbackToLogsOnError. Runtimes that load the program themselves (gVisor: "starting
 * container: … failed to load /app: exec format error") fail the start: StartError, RunContainerError.
 */
const EXEC_FORMAT_ERROR = /exec format error|: (?:line )?1: \x7fELF/i;

/**
 * What runtimes say of an index without the node's platform: containerd ("no match for platform in manifest sha256:…"), CRI-O
 * (`no image found in image index for architecture "arm64"`), Docker ("no matching manifest for linux/arm64").
 */
const NO_MATCH =
  /no match for platform in manifest|no image found in (?:image index|manifest list) for architecture|no matching manifest for /i;

/** Waiting for these reasons is part of every start. */
const STARTING: ReadonlySet<unknown> = new Set(['ContainerCreating', 'PodInitializing', '', undefined]);

/** A digest of a manifest behind a name: `docker.io/library/nginx@sha256:…`, `docker-pullable://nginx@sha256:…`. */
const PULLED = /^(?:docker-pullable:\/\/)?([^@]+)@((?:sha256:[0-9a-f]{64})|(?:sha512:[0-9a-f]{128}))$/;

/**
 * The containers of a pod that do not run, init containers before the others, by its `spec` and `status`; undefined where all
 * run, start, or have ended well, and for a pod that is over. `before`: what was read last, which is given back where it is
 * the same. Called for every event of every pod: it allocates nothing where no container is broken.
 */
export function readBroken(
  spec: JsonObject,
  status: JsonObject,
  before?: readonly BrokenContainer[],
): readonly BrokenContainer[] | undefined {
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return undefined;
  if (!hasBroken(status.initContainerStatuses) && !hasBroken(status.containerStatuses)) return undefined;
  const broken = [
    ...brokenIn(status.initContainerStatuses, listAt(spec, 'initContainers') ?? [], before),
    ...brokenIn(status.containerStatuses, listAt(spec, 'containers') ?? [], before),
  ];
  return JSON.stringify(broken) === JSON.stringify(before) ? before : broken;
}

function hasBroken(statuses: unknown): boolean {
  if (!Array.isArray(statuses)) return false;
  for (const container of statuses) if (troubleOf(container) !== undefined) return true;
  return false;
}

function brokenIn(
  statuses: unknown,
  containers: readonly JsonObject[],
  before: readonly BrokenContainer[] | undefined,
): BrokenContainer[] {
  const found: BrokenContainer[] = [];
  for (const status of Array.isArray(statuses) ? statuses : []) {
    const shown = troubleOf(status);
    if (shown === undefined || !isObject(status)) continue;
    const name = stringAt(status, 'name') ?? '';
    const container = containers.find((each) => each.name === name);
    const image = (container && stringAt(container, 'image')) ?? '';
    const last = before?.find((each) => each.name === name && each.image === image);
    const trouble = last !== undefined && isBackingOff(status) ? last.trouble : shown;
    // An image that is never pulled was put onto the node by hand: no registry is asked for it, under no name.
    const isPulled = container?.imagePullPolicy !== 'Never';
    found.push({
      name,
      image,
      trouble,
      pulled: isPulled ? readPulled(image, stringAt(status, 'imageID') ?? '') : undefined,
    });
  }
  return found;
}

/** Between two pulls older kubelets say only that they wait: what they said of the last pull still holds. */
function isBackingOff({ state }: JsonObject): boolean {
  const waiting = isObject(state) && isObject(state.waiting) ? state.waiting : undefined;
  return waiting?.reason === 'ImagePullBackOff' && !says(waiting, /ErrImagePull/);
}

/** While a container waits for its next start (CrashLoopBackOff), only its last state says what it died of. */
function troubleOf(status: unknown): Trouble | undefined {
  if (!isObject(status) || !isObject(status.state)) return undefined;
  const { running, waiting, terminated } = status.state;
  if (isObject(running)) return undefined;
  if (says(waiting, NO_MATCH)) return 'no-match-for-platform';
  if (says(waiting, EXEC_FORMAT_ERROR) || says(terminated, EXEC_FORMAT_ERROR)) return 'exec-format-error';
  const last = isObject(status.lastState) ? status.lastState.terminated : undefined;
  if (says(last, EXEC_FORMAT_ERROR)) return 'exec-format-error';
  if (isObject(waiting)) return STARTING.has(waiting.reason) ? undefined : 'failing';
  return isObject(terminated) && typeof terminated.exitCode === 'number' && terminated.exitCode !== 0
    ? 'failing'
    : undefined;
}

function says(state: unknown, text: RegExp): boolean {
  if (!isObject(state)) return false;
  const { message, reason } = state;
  return (typeof message === 'string' && text.test(message)) || (typeof reason === 'string' && text.test(reason));
}

/**
 * The digest that the runtime pulled, under the name that the pod asked for: another pod may have pulled the same digest from a
 * repository that this one may not read. Docker's `sha256:…` alone is the digest of a configuration and names no manifest.
 */
function readPulled(image: string, imageId: string): PodImage | undefined {
  const [, name = '', digest = ''] = PULLED.exec(imageId) ?? [];
  if (digest === '') return undefined;
  return { image: `${image === '' ? name : repositoryOf(image)}@${digest}`, pullPolicy: 'IfNotPresent' };
}

/** `registry:5000/team/app` of `registry:5000/team/app:1@sha256:…`. */
function repositoryOf(image: string): string {
  const [undigested = ''] = image.split('@', 1);
  const colon = undigested.lastIndexOf(':');
  return colon > undigested.lastIndexOf('/') ? undigested.slice(0, colon) : undigested;
}
