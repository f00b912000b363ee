import { type Context, EXIT } from '../../app/surroundings.ts';
import { toSettings } from '../../config/settings.ts';
import type { Platform } from '../../kit/platform.ts';
import { ImageError } from '../../oci/errors.ts';
import type { Resolution, Resolver } from '../../oci/resolver.ts';
import { platformNotes, runtimeNotes } from '../../placement/explain/platform-notes.ts';
import { answerLocally } from '../../placement/images.ts';
import { WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { platformText, table, valueText } from '../output.ts';

type Inspected = {
  readonly image: string;
  readonly digest?: string;
  readonly platforms: readonly Platform[];
  readonly skipped: Resolution['skipped'];
  readonly source?: string;
  /** The only container runtime that takes all of these platforms from the index. */
  readonly only?: Resolution['only'];
  /** Whether it is a bundle of the Operator Lifecycle Manager, whose platform limits no pod. */
  readonly isBundle?: true;
  readonly error?: { readonly code: string; readonly message: string };
};

/** Prints the platforms of images as their registries report them. Exit code 2 if one could not be resolved. */
export async function inspect(context: Context, images: readonly string[], lookupTimeoutMs: number): Promise<number> {
  const { config, output, columns, print } = context;
  const settings = toSettings(config);
  return withLookups(
    context,
    { limitMs: lookupTimeoutMs, connect: WITHOUT_CLUSTER },
    async ({ resolver, images: { namesOf }, progress, signal }) => {
      const results = await Promise.all(
        images.map((image) => overridden(image, namesOf(image), settings) ?? inspectOne(resolver, image, signal)),
      );
      progress.end();
      print(output === 'table' ? render(results, columns) : valueText(results, output));
      return results.some(({ error }) => error !== undefined) ? EXIT.found : EXIT.done;
    },
  );
}

/** Returns the platforms that `images.overrides` gives to an image. Then no registry is asked. */
function overridden(
  image: string,
  names: readonly string[],
  settings: Parameters<typeof answerLocally>[2],
): Inspected | undefined {
  const answer = answerLocally({ image, pullPolicy: '' }, names, settings);
  if (answer === undefined || answer === 'not-asked') return undefined;
  return { image, platforms: answer.map((architecture) => ({ os: 'linux', architecture })), skipped: [] };
}

async function inspectOne(resolver: Resolver, image: string, signal: AbortSignal): Promise<Inspected> {
  try {
    const access = { namespace: '', pullSecrets: [], always: false };
    const { digest, platforms, skipped, source, only, isBundle } = await resolver.resolve(image, access, signal);
    return {
      image,
      ...(digest ? { digest } : {}),
      platforms,
      skipped,
      ...(source ? { source } : {}),
      ...(only ? { only } : {}),
      ...(isBundle ? { isBundle } : {}),
    };
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    return { image, platforms: [], skipped: [], error: { code: error.code, message: error.message } };
  }
}

function render(results: readonly Inspected[], columns: number | undefined): string {
  const rows = results.map(({ image, digest, platforms, source, error }) => [
    image,
    error ? `error: ${error.code}` : platforms.map(platformText).join(' ') || 'none',
    source ?? '',
    digest ?? '',
  ]);
  const skipped = results.flatMap((result) =>
    result.skipped.map(({ digest, reason }) => [result.image, reason, digest ?? '']),
  );
  const failed = results.flatMap(({ image, error }) => (error === undefined ? [] : [[image, error.message]]));
  const errors = failed.length === 0 ? '' : `\nNot resolved.\n${table(['IMAGE', 'MESSAGE'], failed, columns)}`;
  const left = skipped.length === 0 ? '' : `\nLeft out.\n${table(['IMAGE', 'REASON', 'DIGEST'], skipped, columns)}`;
  const notes = results.flatMap(({ image, platforms, only, isBundle }) =>
    [...runtimeNotes(only), ...(isBundle ? [BUNDLE] : platformNotes(platforms))].map((note) => [image, note]),
  );
  const noted = notes.length === 0 ? '' : `\nNotes.\n${table(['IMAGE', 'NOTE'], notes, columns)}`;
  return table(['IMAGE', 'PLATFORMS', 'SOURCE', 'DIGEST'], rows, columns) + errors + noted + left;
}

const BUNDLE =
  'a bundle of the Operator Lifecycle Manager by its labels, which has only files: it limits no pod to a platform';
