import { expect } from 'chai';
import { isTaken, takenFrom } from '../../src/config/cluster-keys.ts';
import { parseConfig } from '../../src/config/config-file.ts';
import { allKeys, valueAt, variableName } from '../../src/config/keys.ts';
import { loadConfig } from '../../src/config/load.ts';
import { sampleOf } from './samples.ts';

/** What the text of a key says if its value is a program, a path, a directory or a credential. */
const DANGEROUS =
  /\b(path|file|directory|directories|plug-?ins?|program|command|login|secret|credentials?|certificates?|address(es)?|listens?)\b/i;

/** Keys whose text names such a thing, and whose value is none. */
const HARMLESS: Readonly<Record<string, string>> = {
  'registries.insecure':
    'hosts; they decide how a registry is asked, and give way where the user gives logins of their own',
  'registries.mirrors': 'hosts, and whose login a mirror gets; they give way where the user gives logins of their own',
  'registries.private': 'patterns of images; a match only leaves requests out',
  loops: 'a closed list of words',
  'metrics.address': 'only its port is used, through the API server, to a pod of the installation',
};

const nested = (path: string, value: unknown): string =>
  JSON.stringify(path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value));

describe("what a command takes of the cluster's configuration", () => {
  it('is no key whose text speaks of a program, a path, a directory, a credential or an address', () => {
    const dangerous = allKeys().filter(({ description, expected }) => DANGEROUS.test(`${description} ${expected}`));
    const taken = dangerous.filter((key) => isTaken(key.path)).map(({ path }) => path);
    expect(taken.toSorted()).to.deep.equal(Object.keys(HARMLESS).toSorted());
  });

  it('is no key that holds any text: what is taken is checked by a rule of its own', () => {
    const anything = 'sh -c "id > /tmp/x"';
    const free = allKeys().filter(
      (key) => isTaken(key.path) && [anything, [anything]].some((value) => key.schema.safeParse(value).success),
    );
    expect(free.map(({ path }) => path)).to.deep.equal([]);
  });

  for (const key of allKeys().filter((each) => !isTaken(each.path))) {
    it(`leaves out ${key.path} of the file, the arguments and the variables, and says so`, () => {
      const [text, value] = sampleOf(key);
      expect(value).not.to.deep.equal(key.fallback);
      const none = { file: undefined, environment: {}, flags: {} };
      for (const layers of [
        { ...none, file: parseConfig('ConfigMap archaware/settings', nested(key.path, value)) },
        { ...none, flags: { [key.path]: text } },
        { ...none, environment: { [variableName(key.path)]: text } },
      ]) {
        const { layers: taken, leftOut } = takenFrom(layers, false);
        expect(leftOut).to.deep.equal([key.path]);
        expect(valueAt(loadConfig(taken).config, key.path)).to.deep.equal(key.fallback);
      }
    });
  }

  it('keeps what decides, with its line, and unknown keys, which are then reported', () => {
    const file = parseConfig('f', 'workers: 3\ntaints:\n  key: example.com/a\n  effect: NoExecute\nnew: {key: 1}\n');
    const { layers } = takenFrom({ file, environment: {}, flags: { 'pods.daemonSets': 'ignore' } }, false);
    expect(layers.flags).to.deep.equal({ 'pods.daemonSets': 'ignore' });
    expect(() => loadConfig(layers)).to.throw(
      /taints\.effect: got "NoExecute".* \(f:4\)[\s\S]*new: unknown key \(f:5\)/,
    );
  });

  it('leaves out where lookups go as well if the user gave logins of their own', () => {
    const mirrors = { 'docker.io': { endpoints: ['evil.example.com'], credentials: 'source' } };
    const registries = { mirrors, insecure: ['registry.example.com'], private: ['registry.example.com/*'] };
    const file = parseConfig('f', JSON.stringify({ registries }));
    const config = (hasLogins: boolean) =>
      loadConfig(takenFrom({ file, environment: {}, flags: {} }, hasLogins).layers).config;
    expect(config(false).registries).to.deep.include({ insecure: registries.insecure, private: registries.private });
    expect(config(false).registries.mirrors['docker.io']?.credentials).to.equal('source');
    expect(config(true).registries).to.deep.include({ insecure: [], mirrors: {}, private: registries.private });
  });
});
