import { platformNotes, runtimeNotes } from '../../analysis/explain/platform-notes.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { toSettings } from '../../config/settings.ts';
import { each } from '../../kit/fairness/each.ts';
import { printable } from '../../kit/printable.ts';
import { type Inside, lookIntoLayers } from '../../oci/deep/look-inside.ts';
import { ImageError, type RequestPlace, type RequestRecord } from '../../oci/errors.ts';
import type { Resolution, Resolver, TagResolver } from '../../oci/resolver.ts';
import { loginText } from '../../oci/sentences.ts';
import { answerLocally, intersect } from '../../placement/images.ts';
import { few } from '../../placement/reasons.ts';
import { WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { bytesText, counted, insideText, paragraphs, platformText, table, titled, valueText } from '../output.ts';
import { createPaint, type Paint, type Tone } from '../paint.ts';

type Inspected = Omit<Resolution, 'isIndex'> & {
  readonly image: string;
  /** What its platforms start, with `--deep`. */
  readonly deep?: readonly Inside[];
  readonly error?: { readonly code: string; readonly message: string };
};

type InspectOptions = {
  readonly lookupTimeoutMs: number | undefined;
  readonly isDeep: boolean;
  readonly isVerbose: boolean;
};

/** Images whose layers are read at the same time. */
const AT_ONCE = 4;

/**
 * Prints the platforms of images as their registries report them, and, with `--deep`, what they start. Exit code 2 if one could
 * not be resolved, or if a program is not for the platform that the image declares.
 */
export async function inspect(
  context: Context,
  images: readonly string[],
  { lookupTimeoutMs, isDeep, isVerbose }: InspectOptions,
): Promise<number> {
  const { config, output, columns, print } = context;
  const settings = toSettings(config);
  return withLookups(
    context,
    {
      limitMs: lookupTimeoutMs,
      connect: WITHOUT_CLUSTER,
      ...(isVerbose ? { telemetry: { requested: (...sent) => context.note(requestText(...sent)) } } : {}),
    },
    async ({ resolver, images: { namesOf }, progress, signal }) => {
      const resolved = await Promise.all(
        images.map((image) => overridden(image, namesOf(image), settings) ?? inspectOne(resolver, image, signal)),
      );
      const results = [...resolved];
      await each([...(isDeep ? resolved.entries() : [])], AT_ONCE, async ([index, one]) => {
        results[index] = await lookInside(one, resolver, signal);
      });
      progress.end();
      const paint = createPaint(context);
      const text = () =>
        headline(results, paint) +
        render(results, columns).replaceAll(/\berror: [a-z-]+/g, (found) => paint.tone('bad', found));
      print(output === 'table' ? text() : valueText(results, output));
      const isWrong = ({ error, deep = [] }: Inspected): boolean =>
        error !== undefined || deep.some(({ verdict }) => verdict === 'lies');
      return results.some(isWrong) ? EXIT.found : EXIT.done;
    },
  );
}

/** `GET manifest at registry.example.com: 200 in 12 ms, pull secret "shop"`. */
function requestText({ method, code, seconds }: RequestRecord, { host, of, login }: RequestPlace): string {
  const who = login === undefined ? 'anonymous' : loginText(login);
  return `${method} ${of} at ${printable(host, 200)}: ${code} in ${Math.round(seconds * 1000)} ms, ${who}`;
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

const ACCESS = { namespace: '', pullSecrets: [], always: false };

/** Adds what the image starts. Of an image that `images.overrides` answers, the operator's word counts. */
async function lookInside(one: Inspected, resolver: TagResolver, signal: AbortSignal): Promise<Inspected> {
  const { image, digest, platforms, error } = one;
  if (error !== undefined || digest === undefined) return one;
  try {
    const task = { digest, platforms, overrides: [{}], access: ACCESS, signal };
    return { ...one, deep: (await lookIntoLayers(resolver, image, task)).flat() };
  } catch (failure) {
    if (!(failure instanceof ImageError)) throw failure;
    const reason = printable(failure.message, 300);
    return { ...one, deep: platforms.map((platform) => ({ platform, verdict: 'unknown', reason, bytesRead: 0 })) };
  }
}

async function inspectOne(resolver: Resolver, image: string, signal: AbortSignal): Promise<Inspected> {
  try {
    const { digest, platforms, skipped, source, only, isBundle } = await resolver.resolve(image, ACCESS, signal);
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

/** Returns the verdict for a terminal; empty in a pipe. */
function headline(results: readonly Inspected[], paint: Paint): string {
  if (!paint.marks) return '';
  const failed = results.filter(({ error }) => error !== undefined);
  const wrong = results.filter(({ deep = [] }) => deep.some(({ verdict }) => verdict === 'lies'));
  const sets = results.map(({ platforms }) => [...new Set(platforms.map(({ architecture }) => architecture))]);
  const common = intersect(sets)?.join(', ') || 'no architecture';
  const [only] = results;
  const good =
    results.length === 1 ? `${only?.image} is for ${common}` : `all ${results.length} images are for ${common}`;
  const names = (some: readonly Inspected[]) => few(some.map(({ image }) => image));
  const [tone, text]: [Tone, string] =
    failed.length > 0
      ? ['bad', `${failed.length} of ${counted(results.length, 'image')} could not be resolved: ${names(failed)}`]
      : wrong.length > 0
        ? ['bad', `a program is not for the platform that its image declares: ${names(wrong)}`]
        : ['good', good];
  return `${paint.mark(tone)} ${paint.bold(printable(text, 1_000))}\n\n`;
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
  const notes = results.flatMap(({ image, platforms, only, isBundle }) =>
    [...runtimeNotes(only), ...(isBundle ? [BUNDLE] : platformNotes(platforms))].map((note) => [image, note]),
  );
  const programs = results.flatMap(({ image, deep = [] }) =>
    deep.map((each) => [image, each.verdict, insideText(each), each.reason ?? '', bytesText(each.bytesRead)]),
  );
  return paragraphs([
    table(['IMAGE', 'PLATFORMS', 'SOURCE', 'DIGEST'], rows, columns),
    titled('Programs.', ['IMAGE', 'VERDICT', 'PROGRAM', 'REASON', 'READ'], programs, columns),
    titled('Not resolved.', ['IMAGE', 'MESSAGE'], failed, columns),
    titled('Notes.', ['IMAGE', 'NOTE'], notes, columns),
    titled('Left out.', ['IMAGE', 'REASON', 'DIGEST'], skipped, columns),
  ]);
}

const BUNDLE =
  'a bundle of the Operator Lifecycle Manager by its labels, which has only files: it limits no pod to a platform';
