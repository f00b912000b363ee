/**
 * A platform as an OCI image index names it (OCI image-spec, image-index.md, `platform`): GOOS and GOARCH values,
 * already normalised by {@link normaliseArchitecture}. The variant is reported, never decided on.
 */
export type Platform = { readonly os: string; readonly architecture: string; readonly variant?: string };

/** Other spellings of GOARCH values that registries and users are known to hold. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['aarch64', 'arm64'],
  ['armhf', 'arm'],
  ['armel', 'arm'],
  ['i386', '386'],
  ['i686', '386'],
  ['x86', '386'],
]);

/**
 * Whether a string can be an architecture's name: what may reach a taint's value, a toleration or a label, and ends
 * therefore in a letter or digit (apimachinery, IsValidLabelValue): one that does not would void a whole patch.
 */
export function isArchitectureName(text: string): boolean {
  return /^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/.test(text);
}

/**
 * The GOARCH name for an architecture as found in the wild: trimmed, lower case, aliases resolved (`x86_64` is `amd64`).
 * Returns undefined for what cannot be an architecture's name, and for `unknown`, which attestations use.
 */
export function normaliseArchitecture(text: string): string | undefined {
  const lower = text.trim().toLowerCase();
  const name = ALIASES.get(lower) ?? lower;
  return name !== 'unknown' && isArchitectureName(name) ? name : undefined;
}
