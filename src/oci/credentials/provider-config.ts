import { LineCounter, parseDocument } from 'yaml';
import * as z from 'zod';
import { parseGoDuration } from '../../kit/duration.ts';
import { printableAscii } from '../../kit/printable.ts';
import { isPattern } from './match.ts';

const VERSIONS = ['v1', 'v1beta1', 'v1alpha1'];
const CONFIG_V1 = 'kubelet.config.k8s.io/v1';
const CONFIG_KIND = 'CredentialProviderConfig';

// Each message follows the path of its field.
const text = z.string(' must be a string');
const listOf = <T extends z.ZodType>(item: T, items: string) =>
  z
    .array(item, ` must be a list of ${items}`)
    .nullish()
    .transform((list) => list ?? []);
const oneOf = (expected: readonly string[]) =>
  z.enum(expected, {
    error: ({ input }) => {
      const got = typeof input === 'string' ? `"${printableAscii(input, 60)}"` : 'a value that is not a string';
      return `: got ${got}, expected ${expected.join(' or ')}`;
    },
  });
const objectOf = <T extends z.ZodRawShape>(shape: T, kind = 'an object') =>
  z.strictObject(shape, {
    error: ({ code, keys }) =>
      code === 'unrecognized_keys'
        ? ` has an unknown field "${printableAscii(String(keys[0]), 60)}"`
        : ` is not ${kind}`,
  });

const NO_IMAGES = ' must be a list with at least one entry';
const NO_DURATION = ' must be a duration such as 12h or 5m30s';
const PROVIDER = objectOf({
  apiVersion: oneOf(VERSIONS.map((version) => `credentialprovider.kubelet.k8s.io/${version}`)),
  name: text.regex(
    /^(?!\.{1,2}$)[^\s/\\\0]+$/,
    ' must be the name of a program in the directory of binaries, without a path',
  ),
  matchImages: z
    .array(
      text.refine(isPattern, {
        error: ({ input }) =>
          `: got "${printableAscii(String(input), 60)}", expected a pattern of images' names such as *.example.com/team`,
      }),
      NO_IMAGES,
    )
    .min(1, NO_IMAGES),
  // In milliseconds; for answers that name no duration.
  defaultCacheDuration: text.transform(parseGoDuration).pipe(z.number(NO_DURATION).min(0, NO_DURATION)),
  args: listOf(text, 'strings'),
  env: listOf(
    objectOf({ name: text.regex(/^[^=\0]+$/, ' is not a valid name of a variable'), value: text.nullish() }),
    'name and value',
  ).transform((list) => Object.fromEntries(list.map(({ name, value }) => [name, value ?? '']))),
  // Only the kubelet reads what is in it.
  tokenAttributes: z.unknown().optional(),
});

/** A kubelet image credential provider plug-in, as the configuration file names it. */
export type Provider = Omit<z.infer<typeof PROVIDER>, 'tokenAttributes'> & {
  /**
   * Whether kubelets give it a token of the pod's service account (`tokenAttributes`, KEP-4412: beta and on by default since
   * Kubernetes 1.34). Archaware has no such token, so it never runs the program; it only names it as the reason of a refusal.
   */
  readonly isForPods?: true;
};

const CONFIG = objectOf(
  {
    kind: oneOf([CONFIG_KIND]),
    apiVersion: oneOf(VERSIONS.map((version) => `kubelet.config.k8s.io/${version}`)),
    providers: listOf(PROVIDER, 'providers'),
  },
  `a ${CONFIG_KIND}`,
);

/**
 * Returns the providers of all files of a configuration, in the order of the files.
 *
 * @throws Error if there is none, or if two have the same name
 */
export function mergeProviders(files: readonly (readonly Provider[])[]): Provider[] {
  const providers = files.flat();
  if (providers.length === 0) throw new Error('providers must be a list with at least one entry');
  const names = providers.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Error(`providers: the name "${twice}" is given twice`);
  return providers;
}

/**
 * Parses a file with a `CredentialProviderConfig` of kubelet.config.k8s.io, YAML or JSON, as strictly as the kubelet does in what
 * archaware uses of it (pkg/credentialprovider/plugin/config.go). A file alone must have a provider: {@link mergeProviders}.
 *
 * @throws Error naming the field
 */
export function parseProviders(source: string): Provider[] {
  const { data, error } = CONFIG.safeParse(parseYaml(source));
  if (data === undefined) {
    const unknown = error.issues.find(({ code }) => code === 'unrecognized_keys');
    const { path = [], message = '' } = unknown ?? error.issues[0] ?? {};
    throw new Error(`${path.length === 0 ? 'it' : z.core.toDotPath(path)}${message}`);
  }
  return data.providers.map(({ tokenAttributes, ...provider }, index) => {
    if (tokenAttributes !== undefined && data.apiVersion !== CONFIG_V1) {
      throw new Error(`providers[${index}] has an unknown field "tokenAttributes"`);
    }
    return { ...provider, ...((tokenAttributes ?? undefined) === undefined ? {} : { isForPods: true }) };
  });
}

function parseYaml(source: string): unknown {
  const lineCounter = new LineCounter();
  let problem: string;
  try {
    const document = parseDocument(source, { lineCounter, prettyErrors: false, logLevel: 'error' });
    const [error] = document.errors;
    if (error === undefined) return document.toJS({ maxAliasCount: 100 });
    // The parser's own message may quote the file.
    problem = ` (line ${lineCounter.linePos(error.pos[0]).line}: ${error.code})`;
  } catch {
    // The parser runs out of stack on some nested texts, and refuses to follow some aliases.
    problem = ': its aliases cannot be followed, or it is nested too deeply';
  }
  throw new Error(`it is not valid YAML${problem}`);
}
