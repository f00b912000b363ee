/** Writes the architectures of the program into the sources of the policies, so that both hold the same list. */
import { readFile } from 'node:fs/promises';
import { ALIASES, ARCHITECTURES } from '../../src/kit/platform.ts';
import type { GeneratedFile } from '../write-between.ts';

const COMPONENTS = new URL('../../manifests/kustomize/components/', import.meta.url);

/** Returns the policies that know architectures, with their correct contents. Throws if one lacks the variable. */
export async function policies(): Promise<GeneratedFile[]> {
  return await Promise.all(
    ['pods/policy', 'daemonsets/policy', 'nodes/policy', 'keep/pods', 'publish/policy', 'publish/daemonsets'].map(
      async (name) => {
        const file = new URL(`${name}.yaml`, COMPONENTS);
        const listed = withExpression(
          await readFile(file, 'utf8'),
          'architectures',
          `['${ARCHITECTURES.join("', '")}']`,
        );
        return { file, content: name === 'nodes/policy' ? withExpression(listed, 'aliases', aliases()) : listed };
      },
    ),
  );
}

function aliases(): string {
  return `{${[...ALIASES].map(([alias, name]) => `'${alias}': '${name}'`).join(', ')}}`;
}

/** Replaces the expression of a variable, which must be on the line below `expression: >-`. */
function withExpression(policy: string, variable: string, expression: string): string {
  const place = new RegExp(`(\\n  - name: ${variable}\\n    expression: >-\\n +).*`);
  if (!place.test(policy)) throw new Error(`no policy variable ${variable}`);
  return policy.replace(place, (_, head: string) => `${head}${expression}`);
}
