import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { chartFiles } from '../hack/chart/files.ts';
import { valuesSchema } from '../hack/chart/values-schema.ts';
import { jsonSchema } from '../src/config/json-schema.ts';
import { isObject } from '../src/kit/json.ts';

describe('the Helm chart', () => {
  it('has what the sources say (else: npx tsx hack/chart.ts)', async () => {
    for (const { file, content } of await chartFiles()) {
      expect(await readFile(file, 'utf8'), file.pathname).to.equal(content);
    }
  });

  it('has a schema that knows every key of the configuration, and no pattern that Go could not read', () => {
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
});
