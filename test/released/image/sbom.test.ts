import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { expect } from 'chai';
import { at, listAt, textAt } from '../../../hack/cluster/json.ts';
import { bundledPackages } from '../../../hack/release/image/bundle.ts';
import type { Contents } from '../../../hack/release/image/contents.ts';
import { billOfMaterials, type Subject } from '../../../hack/release/image/sbom.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;
const contents = (architecture: string, digit: string): Contents => ({
  platform: { os: 'linux', architecture, digest: digest(digit) },
  system: { id: 'debian', version: '13', name: 'Debian GNU/Linux 13 (trixie)' },
  node: { version: '24.21.0', sha256: digit.repeat(64) },
  debian: [
    { name: 'libc6', version: '2.41-12', architecture, source: 'glibc' },
    { name: 'libstdc++6', version: '14.2.0-19', architecture, source: 'gcc-14@14.2.0-19' },
    { name: 'base-files', version: '13.8+deb13u1', architecture, source: undefined },
  ],
  npm: [
    { name: 'npm', version: '11.6.0', license: 'Artistic-2.0' },
    { name: '@npmcli/agent', version: '3.0.0', license: '(MIT OR Apache-2.0)' },
  ],
  bundle: Buffer.from('bundle'),
});
const SUBJECT: Subject = {
  release: {
    version: '0.2.0',
    commit: 'c'.repeat(40),
    created: new Date('2026-11-23T12:00:00Z'),
    source: 'https://source.invalid/archaware-controller',
    image: 'registry.invalid:5000/acme/archaware-controller',
  },
  digest: digest('1'),
  base: { name: 'docker.io/library/node:24-trixie-slim', digest: digest('2') },
  platforms: [contents('amd64', '3'), contents('s390x', '4')],
  bundled: [{ name: '@peculiar/x509', version: '2.2.0', license: 'MIT', sha512: 'ab'.repeat(64) }],
};
const purls = (document: unknown) => listAt(document, 'components').map((one) => at(one, 'purl'));

describe('the bill of materials of an image', () => {
  const text = billOfMaterials(SUBJECT);
  const document: unknown = JSON.parse(text);

  it('is valid by the JSON schema of CycloneDX', async () => {
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    expect(await validator.validate(text)).to.equal(null);
    expect(await validator.validate(text.replace('"platform"', '"plattform"'))).not.to.equal(null);
  });

  it('is about the index, and has the same text for the same subject in another order', () => {
    expect(textAt(document, 'metadata', 'component', 'purl')).to.equal(
      `pkg:oci/archaware-controller@${digest('1')}?repository_url=registry.invalid%3A5000%2Facme%2Farchaware-controller&tag=0.2.0`,
    );
    expect(textAt(document, 'metadata', 'timestamp')).to.equal('2026-11-23T12:00:00.000Z');
    expect(textAt(document, 'serialNumber')).to.match(/^urn:uuid:1{8}-1{4}-81{3}-81{3}-1{12}$/);
    const platforms = SUBJECT.platforms.map((one) => ({ ...one, debian: one.debian.toReversed() })).toReversed();
    expect(billOfMaterials({ ...SUBJECT, platforms })).to.equal(text);
  });

  it('names Node.js, the packages of Debian of each platform, and those of npm once', () => {
    expect(purls(document)).to.include.members([
      'pkg:generic/node@24.21.0?arch=amd64',
      'pkg:generic/node@24.21.0?arch=s390x',
      'pkg:deb/debian/libc6@2.41-12?arch=amd64&distro=debian-13&upstream=glibc',
      'pkg:deb/debian/libc6@2.41-12?arch=s390x&distro=debian-13&upstream=glibc',
      'pkg:deb/debian/libstdc%2B%2B6@14.2.0-19?arch=amd64&distro=debian-13&upstream=gcc-14%4014.2.0-19',
      'pkg:npm/%40peculiar/x509@2.2.0',
      'pkg:npm/npm@11.6.0',
    ]);
    expect(new Set(purls(document)).size).to.equal(purls(document).length);
    const node = listAt(document, 'components').find((one) => at(one, 'name') === 'node');
    expect(at(node, 'cpe')).to.equal('cpe:2.3:a:nodejs:node.js:24.21.0:*:*:*:*:*:*:*');
  });

  it('says what is in which platform, and what is in our bundle', () => {
    const dependencies = new Map(
      listAt(document, 'dependencies').map((one) => [textAt(one, 'ref'), listAt(one, 'dependsOn').map(String)]),
    );
    const inside = (start: string) => [...dependencies].find(([ref]) => ref.startsWith(start))?.[1] ?? [];
    expect(
      inside(`pkg:oci/archaware-controller@${digest('1')}`).map((ref) => /@(sha256:.)/.exec(ref)?.[1]),
    ).to.have.members(['sha256:3', 'sha256:4']);
    const amd64 = inside(`pkg:oci/archaware-controller@${digest('3')}`);
    expect(amd64).to.include('pkg:generic/node@24.21.0?arch=amd64');
    expect(amd64.some((ref) => ref.includes('s390x'))).to.equal(false);
    expect(inside('pkg:generic/archaware-controller@0.2.0')).to.deep.equal(['pkg:npm/%40peculiar/x509@2.2.0']);
  });
});

describe('the packages in our bundle', () => {
  const locked = {
    packages: {
      '': { version: '0.2.0' },
      'node_modules/a': { version: '1.0.0', license: 'MIT', integrity: 'sha512-q80=' },
      'node_modules/a/node_modules/@b/c': { version: '2.0.0' },
      'node_modules/unused': { version: '3.0.0' },
    },
  };
  const bundle = (inputs: Readonly<Record<string, number>>) => ({
    outputs: {
      'dist/main.js': {
        inputs: Object.fromEntries(Object.entries(inputs).map(([path, bytesInOutput]) => [path, { bytesInOutput }])),
      },
    },
  });

  it('are those of which something is in it, in the versions of the lockfile', () => {
    const inputs = {
      'src/main.ts': 5,
      'node_modules/a/x.js': 1,
      'node_modules/a/y.js': 1,
      'node_modules/a/node_modules/@b/c/z.js': 1,
      'node_modules/unused/x.js': 0,
    };
    expect(bundledPackages(bundle(inputs), locked)).to.deep.equal([
      { name: 'a', version: '1.0.0', license: 'MIT', sha512: 'abcd' },
      { name: '@b/c', version: '2.0.0', license: undefined, sha512: undefined },
    ]);
  });

  it('must be in the lockfile', () => {
    expect(() => bundledPackages(bundle({ 'node_modules/other/x.js': 1 }), locked)).to.throw(
      'node_modules/other is in the bundle, but not in package-lock.json',
    );
  });
});
