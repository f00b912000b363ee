/**
 * Where documents and test worlds name the versions of Kubernetes that the tests run on. `move-kubernetes.sh` writes these texts, and
 * a test compares them. Texts about what was seen on one version ("on 1.37 the policy did nothing") stay as they are.
 */
import type { Tried } from './versions.ts';

/** What the tests run on. */
export type TriedVersions = { readonly main: Tried; readonly older: readonly Tried[] };

/** A text in a file that follows the versions. `text`: its words; any white space between two words is a space here. */
export type Mention = { readonly file: string; readonly text: (versions: TriedVersions) => string };

export const MENTIONS: readonly Mention[] = [
  {
    file: 'README.md',
    text: ({ main, older }) => `of Kubernetes (${[main, ...older].map(({ minor }) => minor).join(', ')})`,
  },
  { file: 'docs/install.md', text: ({ main }) => `on a real control plane of Kubernetes ${main.minor}.` },
  { file: 'test/simulator/embedded-cluster.ts', text: ({ main }) => `/** Default v${main.patch}. */` },
  { file: 'test/simulator/embedded-cluster.ts', text: ({ main }) => `gitVersion = 'v${main.patch}' }` },
  { file: 'test/simulation/api-server.ts', text: ({ main }) => `gitVersion: 'v${main.patch}',` },
];

/** Returns where the words of a text stand in another one, whatever white space is between them; undefined: nowhere. */
export function foundIn(text: string, words: string): { readonly index: number; readonly found: string } | undefined {
  const pattern = words
    .split(' ')
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    .join('\\s+');
  const match = new RegExp(pattern).exec(text);
  return match === null ? undefined : { index: match.index, found: match[0] };
}

/** Returns a file's text with the words of `from` replaced by those of `to`. Line breaks stay. Throws if the words are not there. */
export function moved(file: string, text: string, from: string, to: string): string {
  const place = foundIn(text, from);
  if (place === undefined)
    throw new Error(`${file} does not say "${from}"; correct it, or hack/cluster/versions/mentions.ts`);
  const gaps = place.found.match(/\s+/g) ?? [];
  const words = to
    .split(' ')
    .map((word, index, all) => (index === all.length - 1 ? word : `${word}${gaps[index] ?? ' '}`));
  return `${text.slice(0, place.index)}${words.join('')}${text.slice(place.index + place.found.length)}`;
}
