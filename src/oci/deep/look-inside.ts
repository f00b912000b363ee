import { onAbort, untilAborted } from '../../kit/abort.ts';
import { type Clock, systemClock } from '../../kit/clock.ts';
import { createAskers } from '../../kit/fairness/askers.ts';
import type { Platform } from '../../kit/platform.ts';
import type { AskingParts } from '../asking.ts';
import type { Access } from '../credentials/keyring.ts';
import { matchesDigest } from '../digest.ts';
import { labelOf } from '../endpoints/endpoint.ts';
import { ImageError } from '../errors.ts';
import { type SendRequest, statusError, withDeadline } from '../http/transport.ts';
import { targetOf } from '../lookup/place.ts';
import { type QueriedEndpoint, requestFor } from '../lookup/request.ts';
import {
  MANIFEST_ACCEPT,
  MAX_CONFIG,
  MAX_MANIFEST,
  type Manifest,
  parseImageConfig,
  parseManifest,
  readPlatform,
} from '../manifest.ts';
import type { Reference } from '../reference.ts';
import type { TagResolver } from '../resolver.ts';
import { type Finding, findProgram, settleFor } from './find-program.ts';
import { type ImageProcess, type Override, processOf, readImageProcess } from './image-process.ts';
import { createStep, PER_PLATFORM, readLayer } from './layer-reader.ts';
import { type Allowance, isLayerProblem, LayerProblem } from './layer-reading.ts';
import { createLayerTree } from './layer-tree.ts';
import { type LayerDescriptor, readLayers, statedPlatform } from './layers.ts';

/** What was found in the layers of one platform. */
export type Inside = Finding & {
  readonly platform: Platform;
  /** Bytes of layers that were downloaded, compressed as they are. */
  readonly bytesRead: number;
};

type LookInsideTask = {
  readonly reference: Reference;
  /** The digest that the name resolved to, so that a tag that moves meanwhile does no harm. */
  readonly digest: string | undefined;
  /** The platforms that count, of those that the image has. */
  readonly platforms: readonly Platform[];
  /** What the containers change; `[{}]`: the image as it is. */
  readonly overrides: readonly Override[];
  readonly access: Access;
  readonly signal: AbortSignal;
};

type LookInside = (task: LookInsideTask) => Promise<readonly (readonly Inside[])[]>;

/** Milliseconds for one platform of an image. */
const PLATFORM_MS = 180_000;
/** Indexes within indexes, as in a lookup, and the entries that are read to learn their platforms. */
const MAX_DEPTH = 3;
const MAX_CHILDREN = 32;

type Asked = Omit<QueriedEndpoint, 'signal'>;

/**
 * Reads what an image starts on each of its platforms out of its layers. Nothing is written to a file. The results are those
 * of each platform for each of the overrides, in the same order.
 *
 * @throws ImageError, or the signal's reason
 */
export async function lookIntoLayers(
  { reach }: Pick<TagResolver, 'reach'>,
  image: string,
  task: Omit<LookInsideTask, 'reference'>,
): ReturnType<LookInside> {
  return reach(image, task.access, task.signal, ({ reference, signal, parts }) =>
    createLookInside(parts)({ ...task, reference, signal }),
  );
}

function createLookInside(options: AskingParts): LookInside {
  const { keyring, limiter, now, timeoutMs } = options;

  return async (task) => {
    const { reference, access, signal } = task;
    const endpoints = options.endpointsOf(reference).filter((each) => each.resolvesTags || task.digest !== undefined);
    const askers = createAskers(access.namespace);
    const keys = await untilAborted(keyring.open(access, signal), signal);
    let failure: ImageError | undefined;
    for (const endpoint of endpoints) {
      const isPrivate = options.isPrivate(reference.name) || options.isPrivate(endpoint.credentialName);
      const own = await keys.candidates(endpoint.credentialName, signal, askers);
      const target = targetOf(endpoint, reference);
      const found = await limiter.run(target.place, askers, signal, async () => {
        for (const credential of isPrivate ? own : [...own, undefined]) {
          try {
            return await lookAt({ ...target, credential, isPrivate }, task);
          } catch (error) {
            if (!(error instanceof ImageError) || signal.aborted) throw error;
            failure = error;
            if (!error.byCredential && !['denied', 'not-found', 'rate-limited'].includes(error.code)) break;
          }
        }
        return undefined;
      });
      if (found !== undefined) return found;
    }
    throw failure ?? new ImageError(`no endpoint of ${reference.registry} may be asked`, { code: 'denied' });
  };

  async function lookAt(asked: Asked, task: LookInsideTask): Promise<readonly (readonly Inside[])[]> {
    const { reference, digest, platforms, signal } = task;
    const root = await get(asked, 'manifests', digest ?? reference.digest ?? reference.tag ?? 'latest', signal);
    const images = await imagesOf(asked, root, platforms, signal);
    const found: (readonly Inside[])[] = [];
    for (const [index, platform] of platforms.entries()) {
      const body = images[index];
      found.push(body === undefined ? missing(platform, task) : await lookAtPlatform(asked, platform, body, task));
    }
    return found;
  }

  function missing(platform: Platform, { overrides }: LookInsideTask): Inside[] {
    const reason = 'its manifest was not found in the index';
    return overrides.map(() => ({ platform, verdict: 'unknown', reason, bytesRead: 0 }));
  }

  /** Returns the manifest of each platform, as text: the first that the index has for it. */
  async function imagesOf(
    asked: Asked,
    root: Uint8Array,
    platforms: readonly Platform[],
    signal: AbortSignal,
  ): Promise<(Uint8Array | undefined)[]> {
    const found: (Uint8Array | undefined)[] = platforms.map(() => undefined);
    let children = 0;
    const indexIn = (platform: Platform): number =>
      platforms.findIndex((each, index) => found[index] === undefined && nameOf(each) === nameOf(platform));

    async function visit(body: Uint8Array, depth: number): Promise<void> {
      const manifest: Manifest = parseManifest(body, undefined);
      if (manifest.kind === 'image') {
        const config = await get(asked, 'blobs', manifest.config.digest, signal);
        const index = indexIn(parseImageConfig(config).platform);
        if (index >= 0) found[index] = body;
        return;
      }
      for (const { digest, kind, isAttestation, platform } of manifest.entries) {
        if (digest === undefined || isAttestation || kind === 'other' || kind === 'schema1') continue;
        const stated = platform === undefined ? undefined : readPlatform({ ...platform, os: platform.os || 'linux' });
        const index = stated === undefined || typeof stated === 'string' ? -1 : indexIn(stated);
        const isOpen = kind === 'index' || stated === undefined;
        if ((index < 0 && !isOpen) || depth > MAX_DEPTH || children >= MAX_CHILDREN) continue;
        children += 1;
        const child = await get(asked, 'manifests', digest, signal).catch(ignoreMissing);
        if (child === undefined) continue;
        if (isOpen) await visit(child, depth + 1);
        else found[index] = child;
      }
    }

    const manifest = parseManifest(root, undefined);
    if (manifest.kind === 'image') return platforms.map(() => root);
    await visit(root, 1);
    return found;
  }

  async function lookAtPlatform(
    asked: Asked,
    platform: Platform,
    body: Uint8Array,
    task: LookInsideTask,
  ): Promise<readonly Inside[]> {
    const unknown = (reason: string): Inside[] =>
      task.overrides.map(() => ({ platform, verdict: 'unknown', reason, bytesRead: 0 }));
    const manifest = parseManifest(body, undefined);
    const layers = readLayers(body);
    if (manifest.kind !== 'image' || layers === undefined) return unknown('its manifest lists no layers');
    const image = readImageProcess(await get(asked, 'blobs', manifest.config.digest, task.signal));
    if (image === undefined) return unknown('its config blob is not a JSON object');
    const stated = statedPlatform(image);
    const isOther = stated !== undefined && stated !== `${platform.os}/${platform.architecture}`;
    const found = await readUntilFound(asked, platform, image, layers, task);
    if (!isOther) return found;
    return found.map((each) => ({
      ...each,
      reason: `${each.reason === undefined ? '' : `${each.reason}; `}its config says ${stated}`,
    }));
  }

  async function readUntilFound(
    asked: Asked,
    platform: Platform,
    image: ImageProcess,
    layers: readonly LayerDescriptor[],
    { overrides, signal }: LookInsideTask,
  ): Promise<Inside[]> {
    const allowance: Allowance = { ...PER_PLATFORM };
    const expired = () => new LayerProblem(`was not reached within ${PLATFORM_MS / 1000} s`, true);
    let endsAt = now() + PLATFORM_MS;
    const step = createStep(allowance, () => {
      if (now() >= endsAt) throw expired();
    });
    const tree = createLayerTree({ step, isCaseless: platform.os === 'windows' });
    const wanted = overrides.map((override) => ({
      // Of an index whose config names another system, the layers are still those of the image.
      platform,
      process: processOf({ ...image, os: platform.os }, override),
      tree,
    }));
    const found = wanted.map((): Finding | undefined => undefined);
    const isFound = (): boolean =>
      wanted.every((each, index) => {
        if (found[index] !== undefined) return true;
        const next = findProgram(each);
        if ('verdict' in next) found[index] = next;
        return 'verdict' in next;
      });
    let why = 'was not reached';
    try {
      await withDeadline(
        PLATFORM_MS,
        signal,
        expired,
        async (until) => {
          for (const [index, { digest, unread }] of layers.entries()) {
            if (isFound()) return;
            if (unread !== undefined) throw new LayerProblem(unread);
            tree.begin();
            const reading = {
              tree,
              allowance,
              isModeless: platform.os === 'windows',
              isEnough: () => tree.hasNews() && isFound(),
            };
            if (!(await download(asked, digest, reading, until))) return;
            tree.end(index === layers.length - 1);
          }
        },
        options.after,
      );
    } catch (error) {
      if (signal.aborted || !isLayerProblem(error)) throw error;
      why = error.message;
    }
    // What is left of the steps is little work.
    endsAt = Number.POSITIVE_INFINITY;
    const bytesRead = Math.min(PER_PLATFORM.compressed - allowance.compressed, PER_PLATFORM.compressed);
    return wanted.map((each, index) => ({ platform, ...(found[index] ?? settleFor(each, why)), bytesRead }));
  }

  /** Reads one layer; returns whether it was read to its end. */
  async function download(
    asked: Asked,
    digest: string,
    reading: Parameters<typeof readLayer>[2],
    signal: AbortSignal,
  ): Promise<boolean> {
    let outcome: { readonly isWhole: boolean } | { readonly problem: LayerProblem } | undefined;
    let hasBegun = false;
    const stalled = createStallGuard(timeoutMs, signal, labelOf(asked), options.after);
    try {
      const response = await options.send(
        requestFor({ ...asked, signal: stalled.signal }, `blobs/${digest}`, {
          method: 'GET',
          headers: { accept: '*/*' },
          maxBytes: reading.allowance.compressed,
          timeoutMs: PLATFORM_MS,
          async read(body) {
            if (hasBegun) throw new Error('the body was read twice');
            hasBegun = true;
            try {
              outcome = { isWhole: await readLayer(stalled.watch(body), digest, reading) };
            } catch (error) {
              if (!isLayerProblem(error) || signal.aborted) throw error;
              outcome = { problem: error };
            }
          },
        }),
      );
      if (response.status < 200 || response.status > 299) throw statusError(response, labelOf(asked), 'a layer', now());
    } finally {
      stalled.end();
    }
    if (outcome === undefined) return false;
    if ('problem' in outcome) throw outcome.problem;
    return outcome.isWhole;
  }

  /** Fetches a manifest or a config blob. Its digest is checked, unless it is asked for by a tag. */
  async function get(
    asked: Asked,
    kind: 'manifests' | 'blobs',
    target: string,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const isManifest = kind === 'manifests';
    const response = await send(asked, `${kind}/${target}`, isManifest, signal);
    const label = labelOf(asked);
    const what = isManifest ? 'manifest' : 'config blob';
    if (response.status < 200 || response.status > 299) throw statusError(response, label, `the ${what}`, now());
    if (target.includes(':') && !matchesDigest(response.body, target)) {
      const message = `${label} sent a ${what} that does not match its digest`;
      throw new ImageError(message, { code: 'malformed', endpoint: label });
    }
    return response.body;
  }

  function send(asked: Asked, path: string, isManifest: boolean, signal: AbortSignal): ReturnType<SendRequest> {
    return options.send(
      requestFor({ ...asked, signal }, path, {
        method: 'GET',
        headers: { accept: isManifest ? MANIFEST_ACCEPT : '*/*' },
        maxBytes: isManifest ? MAX_MANIFEST : MAX_CONFIG,
      }),
    );
  }
}

/** Watches a download: if no byte arrives for so many milliseconds, its signal aborts. */
function createStallGuard(
  milliseconds: number,
  parent: AbortSignal,
  label: string,
  after: Clock['after'] = systemClock.after,
) {
  const controller = new AbortController();
  const forget = onAbort(parent, () => controller.abort(parent.reason));
  let cancel = (): void => {};
  const arm = (): void => {
    cancel();
    cancel = after(milliseconds, () => {
      const message = `${label} sent nothing for ${milliseconds / 1000} s`;
      controller.abort(new ImageError(message, { code: 'timeout', endpoint: label, isUnanswered: true }));
    });
  };
  arm();
  return {
    signal: controller.signal,
    async *watch(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        cancel();
        yield chunk;
        arm();
      }
    },
    /** Ends the watch, and the download, if it goes on. */
    end() {
      cancel();
      forget();
      controller.abort();
    },
  };
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof ImageError && error.code === 'not-found') return undefined;
  throw error;
}

function nameOf({ os, architecture, variant = '' }: Platform): string {
  return `${os}/${architecture}/${variant}`;
}
