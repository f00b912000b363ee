import { cut, strangersText } from '../../kit/cut.ts';
import { weightOf } from '../../kit/fairness/weight.ts';
import { isObject, isSame, type JsonObject, listAt, stringAt } from '../../kit/json.ts';

/** An image of a container or an image volume. The same image with two pull policies counts as two. */
export type PodImage = {
  readonly image: string;
  readonly pullPolicy: string;
  /** The name of the volume (`volumes[].image`) that uses the image; absent for an image of a container. */
  readonly volume?: string;
};

/** No image can have a longer name. */
const LONGEST_IMAGE = 800;

/** Returns the name of an image as it is kept. One that is too long is cut to one character more than allowed: it stays invalid. */
function imageName(name: string): string {
  return cut(name, LONGEST_IMAGE + 1);
}

/** No volume can have a longer name (a DNS label). */
const LONGEST_VOLUME = 63;

/** Returns the distinct images of a spec, in the order of {@link namedImages}: those of containers, then those of volumes. */
export function readImages(spec: JsonObject): PodImage[] {
  const images = new Map<string, PodImage>();
  for (const named of namedImages(spec)) {
    const image = imageName(named.image ?? '');
    const pullPolicy = named.pullPolicy ?? '';
    const key = `${pullPolicy} ${image}`;
    // A template may have an empty image until something fills it in; the API server rejects it in a pod.
    // An image that is there already is skipped: containers come first, and narrow at least as much as volumes do.
    if (!image || images.has(key)) continue;
    const volume = named.volume === undefined ? {} : { volume: cut(named.volume, LONGEST_VOLUME) };
    images.set(key, { image, pullPolicy, ...volume });
  }
  return [...images.values()];
}

type NamedImage = { readonly [field in 'name' | 'image' | 'pullPolicy' | 'volume']: string | undefined };

/** Returns the image of each container and of each image volume, as the spec names it. `name`: of the container. */
export function* namedImages(spec: JsonObject): Generator<NamedImage> {
  for (const field of ['initContainers', 'containers']) {
    for (const container of listAt(spec, field) ?? []) {
      const [name, image] = [stringAt(container, 'name'), stringAt(container, 'image')];
      yield { name, image, pullPolicy: stringAt(container, 'imagePullPolicy'), volume: undefined };
    }
  }
  for (const volume of listAt(spec, 'volumes') ?? []) {
    if (!isObject(volume.image)) continue;
    const { image } = volume;
    const [pullPolicy, named] = [stringAt(image, 'pullPolicy'), stringAt(volume, 'name') ?? ''];
    yield { name: undefined, image: stringAt(image, 'reference'), pullPolicy, volume: named };
  }
}

/**
 * Why a container does not run, by its status.
 *
 * `exec-format-error`: the kernel refused to run the program. This does not prove a wrong architecture: a script without `#!`
 * causes the same text, and so does an image whose manifest names another architecture than its files have. The shells dash and
 * bash use the same words (exit code 126). The shell of busybox, and `env` through /bin/sh, read the program as a script instead
 * and end with exit code 2. If the first bytes of the program make up a command word, the text contains the magic number of ELF,
 * which only a refused program can cause. Otherwise there is a syntax error, which proves nothing.
 *
 * `no-match-for-platform`: the runtime found no entry for the node in the image's index, so it pulled nothing. The text comes
 * from the kubelet, but a registry or an image's name can contain it. So it counts only if the registry's answer agrees.
 *
 * `failing`: the container waits or ended with an error, for any other reason.
 */
export type ContainerTrouble = 'exec-format-error' | 'no-match-for-platform' | 'failing';

/** A container that waits for its next start, or ended with an error. */
export type BrokenContainer = {
  readonly name: string;
  /** The image in the pod's spec, as {@link imageName} returns it; empty if the spec has no such container. */
  readonly image: string;
  readonly trouble: ContainerTrouble;
  /** The image that was pulled, as `repository@digest`; undefined if the status has no digest of a manifest. */
  readonly pulled: PodImage | undefined;
};

/**
 * The texts of runtimes for ENOEXEC: Go's text, and strerror's with a capital (crun). runc and crun can write it only to the
 * container's own stderr, because every other channel is closed by then (opencontainers/runc#3926, #4170: "exec /app: exec format
 * error", exit code 255, or 1 before runc 1.2; crun: "exec container process `/app`: Exec format error"). The status shows it if
 * the container's terminationMessagePolicy is FallbackToLogsOnError. Runtimes that load the program themselves (gVisor: "starting
 * container: … failed to load /app: exec format error") fail the start: StartError, RunContainerError.
 */
const EXEC_FORMAT_ERROR = /exec format error|: (?:line )?1: \x7fELF/i;

/**
 * The texts of runtimes for an index without the node's platform: containerd ("no match for platform in manifest sha256:…"), CRI-O
 * (`no image found in image index for architecture "arm64"`), Docker ("no matching manifest for linux/arm64").
 */
const NO_MATCH =
  /no match for platform in manifest|no image found in (?:image index|manifest list) for architecture|no matching manifest for /i;

/** The reasons for waiting that are part of every normal start. */
const STARTING: ReadonlySet<unknown> = new Set(['ContainerCreating', 'PodInitializing', '', undefined]);

/** An image ID with the digest of a manifest: `docker.io/library/nginx@sha256:…`, `docker-pullable://nginx@sha256:…`. */
const PULLED = /^(?:docker-pullable:\/\/)?([^@]+)@((?:sha256:[0-9a-f]{64})|(?:sha512:[0-9a-f]{128}))$/;

/**
 * Returns the containers of a pod that do not run, init containers first. Undefined if all containers run, start or ended
 * without an error, and for a finished pod. `before`: the previous result, which is returned again if nothing changed. Every
 * event of every pod calls this function, so it allocates nothing if no container is broken.
 */
export function readBroken(
  spec: JsonObject,
  status: JsonObject,
  before?: readonly BrokenContainer[],
): readonly BrokenContainer[] | undefined {
  if (hasEnded(status.phase)) return undefined;
  if (!hasBroken(status.initContainerStatuses) && !hasBroken(status.containerStatuses)) return undefined;
  const broken = within([
    ...brokenIn(status.initContainerStatuses, listAt(spec, 'initContainers') ?? [], before),
    ...brokenIn(status.containerStatuses, listAt(spec, 'containers') ?? [], before),
  ]);
  return isSame(broken, before) ? before : broken;
}

/** The most bytes of broken containers that are kept of a pod: a pod may have thousands of containers with one image. */
const MOST_BYTES = 16 * 1024;

function within(broken: readonly BrokenContainer[]): readonly BrokenContainer[] {
  let bytes = 0;
  return broken.filter((each) => {
    bytes += weightOf(each);
    return bytes <= MOST_BYTES;
  });
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
  // Maps, because a kubelet may write as many statuses as fit into an object.
  const containerOf = new Map(containers.map((each) => [stringAt(each, 'name') ?? '', each]));
  const lastOf = new Map(before?.map((each) => [`${each.name} ${each.image}`, each]));
  for (const status of Array.isArray(statuses) ? statuses : []) {
    const shown = troubleOf(status);
    if (shown === undefined || !isObject(status)) continue;
    const name = stringAt(status, 'name') ?? '';
    const container = containerOf.get(name);
    const image = imageName((container && stringAt(container, 'image')) ?? '');
    const last = lastOf.get(`${name} ${image}`);
    const trouble = last !== undefined && isBackingOff(status) ? last.trouble : shown;
    // An image with the pull policy Never was put onto the node by hand, so no registry is asked about it.
    const isPulled = container?.imagePullPolicy !== 'Never';
    const pulled = isPulled ? readPulled(image, stringAt(status, 'imageID') ?? '') : undefined;
    found.push({ name, image, trouble, pulled });
  }
  return found;
}

/** Between two pulls, older kubelets report only that they wait. Then the error of the last pull is still valid. */
function isBackingOff({ state }: JsonObject): boolean {
  const waiting = isObject(state) && isObject(state.waiting) ? state.waiting : undefined;
  return waiting?.reason === 'ImagePullBackOff' && !says(waiting, /ErrImagePull/);
}

/** While a container waits for its next start (CrashLoopBackOff), only its last state says why it ended. */
function troubleOf(status: unknown): ContainerTrouble | undefined {
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
  return isObject(state) && (isIn(state.message, text) || isIn(state.reason, text));
}

function isIn(shown: unknown, text: RegExp): boolean {
  return typeof shown === 'string' && text.test(strangersText(shown));
}

/**
 * Returns the digest that the runtime pulled, under the repository in the pod's spec: the image ID may name a repository of
 * another pod, which this pod may not read. Docker's `sha256:…` without a name is the digest of a configuration, not a manifest.
 */
function readPulled(image: string, imageId: string): PodImage | undefined {
  const [, name = '', digest = ''] = PULLED.exec(imageId) ?? [];
  if (digest === '') return undefined;
  return { image: `${image === '' ? name : repositoryOf(image)}@${digest}`, pullPolicy: 'IfNotPresent' };
}

/** Returns `registry:5000/team/app` for `registry:5000/team/app:1@sha256:…`. */
function repositoryOf(image: string): string {
  const [undigested = ''] = image.split('@', 1);
  const colon = undigested.lastIndexOf(':');
  return colon > undigested.lastIndexOf('/') ? undigested.slice(0, colon) : undigested;
}

/** Whether a pod with this `status.phase` has ended: it takes no room on its node, and nothing is decided about it. */
export function hasEnded(phase: unknown): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}
