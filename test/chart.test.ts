import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { chartFiles } from '../hack/chart/files.ts';
import { valuesSchema } from '../hack/chart/values-schema.ts';
import { jsonSchema } from '../src/config/json-schema.ts';
import { isObject } from '../src/kit/json.ts';

describe('the Helm chart', () => {
  it('is up to date with the sources (if not: npx tsx hack/chart.ts)', async () => {
    for (const { file, content } of await chartFiles()) {
      expect(await readFile(file, 'utf8'), file.pathname).to.equal(content);
    }
  });

  it('has a schema with every key of the configuration, and only patterns that Go can read', () => {
    const names = (schema: unknown): string[] =>
      isObject(schema) && isObject(schema.properties)
        ? Object.entries(schema.properties).flatMap(([name, part]) => [
            name,
            ...names(part).map((key) => `${name}.${key}`),
          ])
        : [];
    const { properties } = Object(valuesSchema());
    expect(names(properties.config)).to.deep.equal(names(jsonSchema()));
    // Go's regular expressions have neither.
    expect(JSON.stringify(valuesSchema())).not.to.match(/\(\?[=!<]|\\\\[1-9]/);
  });

  it('has a file of values for each mode, and the README sets the same for a provider that taints and for an observer', async () => {
    const chart = 'manifests/helm/archaware-controller';
    const flags = (value: unknown, path = ''): string[] =>
      isObject(value)
        ? Object.entries(value).flatMap(([key, part]) => flags(part, path === '' ? key : `${path}.${key}`))
        : [`--set ${path}=${value}`];
    const readme = await readFile('README.md', 'utf8');
    for (const name of ['provider-taints', 'observe']) {
      const expected = flags(parse(await readFile(`${chart}/values-${name}.yaml`, 'utf8'))).join(' ');
      expect(readme).to.include(`\`${expected}\``);
    }
  });
});
