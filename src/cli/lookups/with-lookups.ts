import { setMaxListeners } from 'node:events';
import type { Connection } from '../../app/connect.ts';
import { loadOperatorFiles } from '../../app/registries/operator-files.ts';
import { createPullSecretReader } from '../../app/registries/pull-secrets.ts';
import { type ResolverParts, resolverFor } from '../../app/registries/registries.ts';
import type { Context } from '../../app/surroundings.ts';
import { createImageSource, type ImageSource } from '../../controllers/image-source.ts';
import { printable } from '../../kit/printable.ts';
import type { TagResolver } from '../../oci/resolver.ts';
import { createProgress, type Progress } from '../progress.ts';
import { createLimit, createPatientResolver, type PatientWaiting, WITHOUT_PROGRESS } from './patient.ts';

/** What a command that asks registries works with. */
export type Asking<Cluster extends Connection | undefined = Connection | undefined> = {
  readonly cluster: Cluster;
  /** Tries again what fails for the moment, and shows for which registry it waits. */
  readonly resolver: TagResolver;
  readonly images: ImageSource;
  /** Returns the registry of an image; empty for a malformed one. */
  registryOf(image: string): string;
  /** Why pull secrets could not be used, by `namespace/name`. */
  readonly secretProblems: ReadonlyMap<string, string>;
  readonly progress: Progress;
  readonly signal: AbortSignal;
  /** Ends the lookups, and not the work. */
  end(): void;
};

type Options<Cluster> = {
  /** How long lookups are tried again. */
  readonly limitMs: number | undefined;
  /** Connects to the cluster whose pull secrets are used. */
  readonly connect: () => Promise<Cluster>;
} & Pick<ResolverParts, 'telemetry'>;

/** For commands that need no cluster. */
export const WITHOUT_CLUSTER = async () => undefined;

/** Asks registries as the configuration says, for as long as the work of a command takes. Throws what cannot be read or reached. */
export async function withLookups<Cluster extends Connection | undefined>(
  context: Context,
  { limitMs, connect, telemetry }: Options<Cluster>,
  work: (asking: Asking<Cluster>) => Promise<number>,
): Promise<number> {
  const { config, clock } = context;
  const files = await loadOperatorFiles(config, clock, (source, problem) => context.note(`${source}: ${problem}`));
  const cluster = await connect();
  const client = cluster?.client;
  const over = new AbortController();
  const signal = AbortSignal.any([context.signal, over.signal]);
  setMaxListeners(0, signal);
  const progress = createProgress(context);
  const secretProblems = new Map<string, string>();
  try {
    const counts = { done: 0, total: 0 };
    const limit = createLimit(clock, limitMs, signal);
    const onWait = (waiting: PatientWaiting) => progress.wait(waiting.registry, waitingText(waiting));
    const asking = resolverFor(config, clock, files, {
      pullSecrets:
        client !== undefined && config.credentials.pullSecrets ? createPullSecretReader(client, clock) : async () => [],
      ...(client === undefined ? {} : { apiServer: client }),
      namesSkipped: true,
      patienceMs: limitMs === 0 ? 0 : WITHOUT_PROGRESS,
      waitsUntil: limit.signal,
      telemetry: {
        ...telemetry,
        unusableSecret: ({ namespace, name, reason }) => void secretProblems.set(`${namespace}/${name}`, reason),
        waits({ registry, inMs }) {
          limit.start();
          onWait({ registry, code: 'rate-limited', againInMs: inMs, ...counts });
        },
      },
      signal,
    });
    const resolver = createPatientResolver(asking, { clock, limit, onWait, counts, signal });
    const images = createImageSource(resolver);
    const registryOf = (image: string) => images.namesOf(image)[0]?.split('/', 1)[0] ?? '';
    const end = () => over.abort();
    return await work({ cluster, resolver, images, registryOf, secretProblems, progress, signal, end });
  } finally {
    progress.end();
    over.abort();
    await cluster?.close();
  }
}

/** `waiting for registry.example.com (rate-limited, again in 10 s): 120 of 200 images looked up`. */
function waitingText({ registry, code, againInMs, done, total }: PatientWaiting): string {
  const again = `again in ${Math.max(1, Math.round(againInMs / 1_000))} s`;
  return `waiting for ${printable(registry, 200)} (${code}, ${again}): ${done} of ${total} images looked up`;
}
