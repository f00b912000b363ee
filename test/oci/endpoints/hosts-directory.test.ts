import { writeFileSync } from 'node:fs';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { createHostsDirectory } from '../../../src/oci/endpoints/hosts-directory.ts';
import type { FileProblem } from '../../../src/oci/endpoints/operator-file.ts';
import type { Trust } from '../../../src/oci/http/trust.ts';
import { folderForEach } from '../../support/folder.ts';
import { mount } from '../../support/mounted.ts';
import { needsPosix } from '../../support/platforms.ts';

const authority = createAuthority('one');
const other = createAuthority('other');
const client = authority.issueClient('client');

describe("containerd's directory of registries", () => {
  const { at, write } = folderForEach();

  async function open(files: Readonly<Record<string, string>>) {
    await write(files);
    const ignored: FileProblem[] = [];
    const hosts = createHostsDirectory(at(), (problem) => ignored.push(problem));
    const problems = await hosts.reload();
    return { ...hosts, paths: () => hosts.paths, ignored, problems };
  }

  type Opened = Awaited<ReturnType<typeof open>>;

  /** The hosts of a registry; `itself` is the registry. */
  function hostsOf(opened: Opened, registry: string): string[] | undefined {
    return opened.hosts(registry)?.entries.map(({ address }) => address?.host ?? 'itself');
  }

  function trustOf(opened: Opened, registry: string): Trust | undefined {
    return opened.hosts(registry)?.entries[0]?.tls;
  }

  const server = (host: string): string => `server = "${host}"\n`;

  const places: [what: string, folders: string[], registry: string, found: string | undefined][] = [
    ['a host', ['quay.io'], 'quay.io', 'quay.io'],
    ['a host and port', ['quay.io:8443'], 'quay.io:8443', 'quay.io:8443'],
    ['a port for file systems without colons', ['quay.io_8443_'], 'quay.io:8443', 'quay.io_8443_'],
    ['that before the other', ['quay.io:8443', 'quay.io_8443_'], 'quay.io:8443', 'quay.io_8443_'],
    ['Docker Hub', ['docker.io', '_default'], 'docker.io', 'docker.io'],
    ['all others', ['docker.io', '_default'], 'quay.io', '_default'],
    ['another port, which is another registry', ['quay.io', 'quay.io_8443_'], 'quay.io:443', undefined],
    ['the end of a name, which is another registry', ['quay.io'], 'y.quay.io', undefined],
    ['IPv6', ['[::1]:5000'], '[::1]:5000', '[::1]:5000'],
    ['IPv6 without colons before ports', ['[fd00::1]_5000_'], '[fd00::1]:5000', '[fd00::1]_5000_'],
    ['a host in capitals, as an image names it', ['Quay.io', '_default'], 'quay.io', 'Quay.io'],
    ['a folder in capitals after one that is not', ['Quay.io', 'quay.io'], 'quay.io', 'quay.io'],
    ['a port after capitals', ['Quay.io_8443_'], 'quay.io:8443', 'Quay.io_8443_'],
    ['a default in capitals, which is not one', ['_DEFAULT'], 'quay.io', undefined],
    ['names that mounts use for themselves', ['..data'], '..data', undefined],
    ['nothing', [], 'quay.io', undefined],
  ];
  for (const [what, folders, registry, found] of places) {
    it(`has a folder for ${what}`, async () => {
      const names = folders.map((_, index) => `h${index}`);
      const opened = await open(
        Object.fromEntries(folders.map((folder, index) => [`${folder}/hosts.toml`, server(`h${index}`)])),
      );
      expect(opened.problems).to.deep.equal([]);
      expect(hostsOf(opened, registry)).to.deep.equal(
        found === undefined ? undefined : [names[folders.indexOf(found)]],
      );
      expect(opened.hosts(registry)?.isDefault).to.equal(found === undefined ? undefined : found === '_default');
    });
  }

  it('names the hosts that it names', async () => {
    const opened = await open({
      '_default/hosts.toml': server('m.b:443'),
      'a.b_5000_/hosts.toml': '[host."http://[::1]:5001"]\n[host."http://m.b:80"]',
      '127.0.0.1:5443/ca.crt': authority.certificate,
    });
    const named = ['127.0.0.1:5443', '[::1]:5001', '_default', 'a.b:5000', 'm.b'];
    expect([...opened.namedHosts()].sort()).to.deep.equal(named);
    await rm(at('a.b_5000_'), { recursive: true });
    await opened.reload();
    expect([...opened.namedHosts()].sort()).to.deep.equal(['127.0.0.1:5443', '_default', 'm.b']);
  });

  it('contains nothing before it is read', () => {
    expect(createHostsDirectory(at()).hosts('quay.io')).to.equal(undefined);
  });

  it('contains nothing if none is configured', async () => {
    const hosts = createHostsDirectory('');
    expect(await hosts.reload()).to.deep.equal([]);
    expect(hosts.hosts('quay.io')).to.equal(undefined);
    expect(hosts.paths).to.deep.equal([]);
  });

  it('reports a problem if it does not exist', async () => {
    const missing = at('missing');
    expect(await createHostsDirectory(missing).reload()).to.deep.equal([
      { file: missing, problem: 'cannot be read (ENOENT)' },
    ]);
  });

  it('loads the certificates that a hosts.toml names', async () => {
    const opened = await open({
      'quay.io/hosts.toml':
        '[host."https://m.b"]\nca = ["ca.crt", "more/ca.pem"]\nclient = [["c.cert", "c.key"], "both.pem"]\nskip_verify = true',
      'quay.io/ca.crt': `# a comment\r\n${authority.certificate}${other.certificate}`,
      'quay.io/more/ca.pem': other.certificate,
      'quay.io/c.cert': client.certificate,
      'quay.io/c.key': client.key,
      'quay.io/both.pem': `${client.key}${client.certificate}`,
    });
    expect(opened.problems).to.deep.equal([]);
    const trust = trustOf(opened, 'quay.io');
    expect(trust).to.deep.include({ verify: false, plain: false });
    expect(trust?.authorities.map((pem) => pem.trim())).to.deep.equal(
      [authority, other, other].map(({ certificate }) => certificate.trim()),
    );
    const both = `${client.key}${client.certificate}`;
    expect(trust?.clients).to.deep.equal([client, { certificate: both, key: both }]);
    expect(opened.hosts('quay.io')?.entries[1]).to.deep.equal({ resolvesTags: true, headers: {} });
  });

  it("accepts certificates with Docker's names if there is no hosts.toml, or an empty one", async () => {
    const files = {
      'b.crt': other.certificate,
      'a.crt': authority.certificate,
      'c.cert': client.certificate,
      'c.key': client.key,
      'd.cert': `${client.certificate}${client.key}`,
      '..data.crt': 'never read',
      'README.md': 'never read',
    };
    const within = (folder: string) => Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]);
    const opened = await open({
      ...Object.fromEntries([...within('quay.io'), ...within('gcr.io')]),
      'gcr.io/hosts.toml': '',
    });
    expect(opened.problems).to.deep.equal([]);
    for (const registry of ['quay.io', 'gcr.io']) {
      expect(hostsOf(opened, registry)).to.deep.equal(['itself']);
      const trust = trustOf(opened, registry);
      expect(trust).to.deep.include({ verify: true, plain: false });
      expect(trust?.authorities).to.have.length(2);
      expect(trust?.clients.map(({ key }) => key)).to.deep.equal([client.key, files['d.cert']]);
    }
  });

  it('ignores certificates that a hosts.toml does not name', async () => {
    const opened = await open({ 'quay.io/hosts.toml': server('m.b'), 'quay.io/ca.crt': authority.certificate });
    expect(trustOf(opened, 'quay.io')).to.equal(undefined);
  });

  it('may have an empty folder, which hides _default and adds nothing', async () => {
    await mkdir(at('quay.io'));
    const opened = await open({ '_default/hosts.toml': server('m.b') });
    expect(opened.hosts('quay.io')).to.deep.equal({ entries: [{ resolvesTags: true, headers: {} }], isDefault: false });
    expect(hostsOf(opened, 'gcr.io')).to.deep.equal(['m.b']);
  });

  it('ignores files beside the folders, and dangling links', async () => {
    await symlink('nowhere', at('gcr.io'));
    const opened = await open({ 'quay.io': 'no folder' });
    expect(opened.problems).to.deep.equal([]);
    expect(opened.hosts('quay.io')).to.equal(undefined);
    expect(opened.hosts('gcr.io')).to.equal(undefined);
  });

  const wrong: [what: string, files: Record<string, string>, problem: RegExp][] = [
    ['a hosts.toml', { 'hosts.toml': 'server = 5' }, /^hosts\.toml: server: expected/],
    ['a hosts.toml that is not UTF-8', { 'hosts.toml': '\xff' }, /^hosts\.toml: is not UTF-8$/],
    ['a hosts.toml that is a folder', { 'hosts.toml/x': '' }, /^hosts\.toml: is not a file$/],
    ['a hosts.toml too large', { 'hosts.toml': '#'.repeat(1024 * 1024 + 1) }, /^hosts\.toml: is larger than 1048576/],
    ['an authority that is missing', { 'hosts.toml': 'ca = "x.pem"' }, /^ca .+[\\/]x\.pem: cannot be read \(ENOENT\)$/],
    [
      'an authority that is invalid',
      { 'hosts.toml': 'ca = "x.pem"', 'x.pem': 'secret' },
      /^ca .+[\\/]x\.pem: contains no PEM certificate$/,
    ],
    ['an authority by its name', { 'x.crt': 'secret' }, /^ca .+[\\/]x\.crt: contains no PEM certificate$/],
    [
      'a key of another certificate',
      { 'c.cert': authority.issueClient('x').certificate, 'c.key': client.key },
      /^client .+[\\/]c\.cert: a PEM certificate and its unencrypted key are expected/,
    ],
    [
      'a certificate without a key',
      { 'hosts.toml': 'client = "c.pem"', 'c.pem': client.certificate },
      /^client .+[\\/]c\.pem: a PEM certificate and its/,
    ],
    [
      'a key that does not exist',
      { 'hosts.toml': 'client = [["c.pem", "k.pem"]]', 'c.pem': client.certificate },
      /^client .+[\\/]c\.pem: cannot be read \(ENOENT\)$/,
    ],
  ];
  for (const [what, files, problem] of wrong) {
    it(`reports what is wrong with ${what}`, async () => {
      for (const [name, text] of Object.entries(files)) {
        const file = at(`quay.io/${name}`);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, text, 'latin1');
      }
      const opened = await open({ 'gcr.io/hosts.toml': server('m.b') });
      expect(opened.problems).to.have.length(1);
      expect(opened.problems[0]?.file).to.equal(at('quay.io'));
      expect(opened.problems[0]?.problem).to.match(problem).and.not.include('secret');
      expect(opened.hosts('quay.io'), 'there is nothing good to keep').to.equal(undefined);
      expect(hostsOf(opened, 'gcr.io'), 'others are read').to.deep.equal(['m.b']);
    });
  }

  it('keeps the last valid contents of a folder', async () => {
    const opened = await open({ 'quay.io/hosts.toml': server('old.b') });
    await write({ 'quay.io/hosts.toml': 'server =' });
    expect((await opened.reload()).map(({ file }) => file)).to.deep.equal([at('quay.io')]);
    expect(hostsOf(opened, 'quay.io')).to.deep.equal(['old.b']);
    await write({ 'quay.io/hosts.toml': server('new.b') });
    expect(await opened.reload()).to.deep.equal([]);
    expect(hostsOf(opened, 'quay.io')).to.deep.equal(['new.b']);
  });

  it('gives a rotated certificate a trust of its own, and the same certificates the same trust', async () => {
    const opened = await open({
      'quay.io/hosts.toml': '[host."https://m.b"]\nca = "ca.crt"\n[host."https://n.b"]\nca = "ca.crt"',
      'quay.io/ca.crt': authority.certificate,
    });
    const [first, second] = opened.hosts('quay.io')?.entries ?? [];
    expect(first?.tls?.id).to.be.a('string').and.equal(second?.tls?.id);
    await opened.reload();
    expect(trustOf(opened, 'quay.io')?.id).to.equal(first?.tls?.id);

    await write({ 'quay.io/ca.crt': other.certificate });
    await opened.reload();
    expect(trustOf(opened, 'quay.io')?.id).not.to.equal(first?.tls?.id);
  });

  it('follows the links of a mounted ConfigMap, also when they are swapped', async function () {
    needsPosix(this, 'link');
    await mount(at(), { 'quay.io/hosts.toml': server('old.b'), 'quay.io/ca.crt': '' });
    const opened = await open({});
    expect(opened.problems).to.deep.equal([]);
    expect(hostsOf(opened, 'quay.io')).to.deep.equal(['old.b']);
    expect(opened.hosts('..data')).to.equal(undefined);

    await mount(at(), { 'quay.io/hosts.toml': server('new.b'), 'quay.io/ca.crt': '' });
    await opened.reload();
    expect(hostsOf(opened, 'quay.io')).to.deep.equal(['new.b']);
  });

  it('names the paths to watch, including those outside it and those that do not exist', async () => {
    const outside = at('..outside.pem');
    await writeFile(outside, authority.certificate);
    const opened = await open({ 'quay.io/hosts.toml': `ca = '${outside}'`, 'gcr.io/x': '' });
    expect([...opened.paths()].sort()).to.deep.equal(
      [at(), outside, at('gcr.io'), at('gcr.io/hosts.toml'), at('quay.io'), at('quay.io/hosts.toml')].sort(),
    );
  });

  it('reports once what it ignores, until it changes', async () => {
    const opened = await open({ 'quay.io/hosts.toml': 'servr = "m.b"', 'gcr.io/hosts.toml': server('m.b') });
    expect(opened.ignored.map(({ file }) => file)).to.deep.equal([at('quay.io/hosts.toml')]);
    expect(opened.ignored[0]?.problem).to.match(/^servr: unknown/);
    await write({ 'gcr.io/hosts.toml': 'skip-verify = true' });
    await opened.reload();
    await opened.reload();
    expect(opened.ignored.slice(1).map(({ file }) => file)).to.deep.equal([at('gcr.io/hosts.toml')]);
  });

  it('reads one reload after the other, so that the last one decides', async () => {
    await write({ 'quay.io/hosts.toml': `servr = "m.b"\n${server('old.b')}` });
    // Called at the end of the first reload, before the second one begins.
    const onIgnored = () => writeFileSync(at('quay.io/hosts.toml'), server('new.b'));
    const hosts = createHostsDirectory(at(), onIgnored);
    await Promise.all([hosts.reload(), hosts.reload()]);
    expect(hosts.hosts('quay.io')?.entries.map(({ address }) => address?.host)).to.deep.equal(['new.b']);
  });
});
