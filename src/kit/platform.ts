import { editDistance, nearest } from './nearest.ts';

/**
 * A platform as an OCI image index names it (OCI image-spec, image-index.md, `platform`): GOOS and GOARCH values,
 * already normalised by {@link normaliseArchitecture}. The variant is reported but never used to decide.
 */
export type Platform = { readonly os: string; readonly architecture: string; readonly variant?: string };

/** The architecture of WebAssembly, whatever its OS (wasi, wasip1, wasip2, js). No node has it; runtimes of RuntimeClasses run it. */
const WEB_ASSEMBLY = 'wasm';

/** Whether these are the architectures of an image that is only WebAssembly. */
export function isWebAssembly(architectures: readonly string[]): boolean {
  return architectures.length > 0 && architectures.every((name) => name === WEB_ASSEMBLY);
}

/**
 * The architectures that Go builds for (`go tool dist list`), and so the ones that a kubelet can report and the
 * configuration can name. The admission policies of the manifests are generated from this list (hack/manifests/policies.ts).
 */
export const ARCHITECTURES: readonly string[] = [
  ...['386', 'amd64', 'arm', 'arm64', 'loong64', 'mips', 'mips64', 'mips64le', 'mipsle', 'ppc64', 'ppc64le'],
  ...['riscv64', 's390x', 'wasm'],
];

/**
 * Names that Go reserves for ports that it no longer has or does not have yet (Go's `internal/syslist`). No node has
 * one. An image that states one runs on no node.
 */
const RESERVED: readonly string[] = [
  ...['amd64p32', 'arm64be', 'armbe', 'mips64p32', 'mips64p32le', 'ppc', 'riscv', 's390', 'sparc', 'sparc64'],
];

const KNOWN: ReadonlySet<string> = new Set([...ARCHITECTURES, ...RESERVED]);

/** Other spellings of GOARCH values that registries and users are known to write; the policy for nodes has them, too. */
export const ALIASES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['aarch64', 'arm64'],
  ['armhf', 'arm'],
  ['armel', 'arm'],
  ['i386', '386'],
  ['i686', '386'],
  ['x86', '386'],
  ['wasm32', 'wasm'],
]);
/** Most people who write it mean 64 bits. */
const AMBIGUOUS = 'x86';

/**
 * The likely meaning of names that the program does not accept. Each pattern matches whole names, after the names in
 * {@link ALIASES} were tried.
 */
const MEANT: readonly (readonly [name: RegExp, meant: string])[] = [
  [/^x86$/, 'amd64, or 386 for 32 bits'],
  [/^(?:x64|amd|amd[-_]?64|amd32|intel(?:64)?|em64t|ia32e|x86[-_]?64(?:[-_/]?v[1-4])?|amd64[-_/]?v[1-4])$/, 'amd64'],
  [/^(?:i[3-6]86|ia32|x32|x86_32)$/, '386'],
  [/^(?:aarch64.*|arm[-_]64|arm64[-_/]?v[89].*|armv?[89].*|graviton\d?)$/, 'arm64'],
  [/^(?:arm(?:hf|el|32.*|[-_/]?v[5-7].*|[5-7].*)|aarch32)$/, 'arm'],
  [/^(?:power(?:pc)?|powerpc64le|ppc64el|ppcle|ppc)$/, 'ppc64le'],
  [/^powerpc64$/, 'ppc64'],
  [/^(?:risc-?v|rv64.*|riscv64.+)$/, 'riscv64'],
  [/^(?:loongarch(?:64)?|loongson)$/, 'loong64'],
  [/^(?:s390|systemz|ibmz)$/, 's390x'],
  [/^(?:mips(?:64)?el)$/, 'mips64le'],
];

/**
 * Whether a string can be the name of an architecture and so may reach a taint's value, a toleration or a label. Such a value must end in a
 * letter or digit (apimachinery, IsValidLabelValue); any other would make the API server refuse the whole patch.
 */
export function isArchitectureName(text: string): boolean {
  return /^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/.test(text);
}

/**
 * Returns the GOARCH name for an architecture that an image states: trimmed, in lower case, aliases resolved (`x86_64` is `amd64`). Returns
 * undefined for every name that Go does not have (`x64`, `armv7l`), and so for `unknown`, which attestations use.
 */
export function normaliseArchitecture(text: string): string | undefined {
  const name = canonical(text);
  return KNOWN.has(name) ? name : undefined;
}

/**
 * The same for a node: every name that can be the value of the node's taint. Only the names of {@link ARCHITECTURES} concern other
 * objects ({@link isArchitecture}): one kubelet could otherwise invent names for all of them.
 */
export function reportedArchitecture(text: string): string | undefined {
  const name = canonical(text);
  return name !== 'unknown' && isArchitectureName(name) ? name : undefined;
}

/**
 * The same for what people write in an annotation or a label. Returns undefined for a name that no node can have, and
 * for a name with two possible meanings (`x86`).
 */
export function readArchitecture(text: string): string | undefined {
  const name = canonical(text);
  return text.trim().toLowerCase() !== AMBIGUOUS && ARCHITECTURES.includes(name) ? name : undefined;
}

/** Whether this is the GOARCH name of an architecture that Go builds for. */
export function isArchitecture(name: string): boolean {
  return ARCHITECTURES.includes(name);
}

function canonical(text: string): string {
  const lower = text.trim().toLowerCase();
  return ALIASES.get(lower) ?? lower;
}

/** The text that follows "expected" in messages about an architecture. */
export const ARCHITECTURE_EXPECTED =
  'an architecture as nodes report it (amd64, arm64, arm, 386, ppc64le, riscv64, s390x, …)';

/** Returns `; did you mean amd64?` for a name that is not allowed, or an empty text if no known name is near. */
export function didYouMean(text: string): string {
  const meant = meantArchitecture(text);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

function meantArchitecture(text: string): string | undefined {
  const lower = text.trim().toLowerCase().slice(0, 40);
  const stated = MEANT.find(([name]) => name.test(lower))?.[1] ?? readArchitecture(lower);
  if (stated !== undefined || lower.length < 3) return stated;
  // Swapped letters are the most common typo: `amr64` must be nearer to arm64 than to amd64.
  const letters = sortedLetters(lower);
  const near = nearest(lower, ARCHITECTURES);
  // The names are short, so the limit must be tight: half the letters of `all` make it `arm`.
  const isNear = near !== undefined && editDistance(lower, near) <= lower.length / 3;
  return ARCHITECTURES.find((name) => sortedLetters(name) === letters) ?? (isNear ? near : undefined);
}

function sortedLetters(text: string): string {
  return [...text].sort().join('');
}
