import { expect } from 'chai';
import { jsonSchema } from '../../src/config/json-schema.ts';
import { allKeys } from '../../src/config/keys.ts';
import { isObject, type JsonObject, objectAt, stringAt } from '../../src/kit/json.ts';

const SCHEMA = jsonSchema();

/** Returns the part of the JSON Schema for a path of the configuration. */
function partAt(path: string): JsonObject {
  return path.split('.').reduce<JsonObject>((part, name) => objectAt(objectAt(part, 'properties'), name), SCHEMA);
}

describe('the JSON Schema of the configuration', () => {
  it('describes every key with its default', () => {
    for (const { path, description, fallback } of allKeys()) {
      expect(stringAt(partAt(path), 'description'), path).to.equal(description);
      expect(partAt(path).default, path).to.deep.equal(fallback);
    }
  });

  it('requires no key and no group of keys, because every key has a default', () => {
    const groups = (part: JsonObject): JsonObject[] => [
      part,
      ...Object.values(objectAt(part, 'properties'))
        .filter(isObject)
        .filter((child) => 'properties' in child)
        .flatMap(groups),
    ];
    const all = groups(SCHEMA);
    expect(all).to.have.length.greaterThan(10);
    for (const group of all) expect(group).not.to.have.property('required');
  });

  it('refuses unknown keys everywhere', () => {
    for (const path of ['taints', 'images', 'images.cache', 'registries.addresses'])
      expect(partAt(path), path).to.have.property('additionalProperties', false);
    expect(SCHEMA).to.have.property('additionalProperties', false);
  });

  it('requires only the name of a policy', () => {
    expect(objectAt(partAt('policies'), 'items').required).to.deep.equal(['name']);
    expect(objectAt(partAt('policies'), 'items')).to.have.property('additionalProperties', false);
  });

  it('requires both parts of an override', () =>
    expect(objectAt(partAt('images.overrides'), 'items').required).to.have.members(['pattern', 'architectures']));
});
