import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { createRoutes, type RouteOptions } from '../../../src/oci/endpoints/mirrors.ts';
import type { FileProblem } from '../../../src/oci/endpoints/operator-file.ts';
import { createRegistriesConf } from '../../../src/oci/endpoints/registries-conf.ts';
import { targetOf } from '../../../src/oci/lookup/health.ts';
import { parseReference } from '../../../src/oci/reference.ts';
import { folderForEach } from '../../support/folder.ts';
import { lines } from './lines.ts';

/** A directory of files, and for each image where it is requested, in order; or one "error". */
type Case = { what: string; files: Record<string, string>; images: Record<string, string[]> };

/** The answers are those of go.podman.io/image: hack/cluster/tools/selection/sources writes them into the file. */
const CASES: Case[] = JSON.parse(await readFile(new URL('registries-conf.json', import.meta.url), 'utf8'));
const DIGEST = `sha256:${'a'.repeat(64)}`;

describe('registries.conf', () => {
  const { at, write } = folderForEach();

  async function open(files: Readonly<Record<string, string>>, path = at()) {
    await write(files);
    const ignored: FileProblem[] = [];
    const conf = createRegistriesConf(path, (problem) => ignored.push(problem));
    const problems = await conf.reload();
    return { conf, problems, ignored };
  }

  async function endpointsOf(image: string, text: string, options: Partial<RouteOptions> = {}) {
    const { conf, problems } = await open({ 'registries.conf': text });
    expect(problems).to.deep.equal([]);
    const routes = createRoutes({ mirrors: {}, insecure: [], sources: conf.sources, ...options });
    return routes.endpointsOf(parseReference(image));
  }

  describe('leads where the package of CRI-O says', () => {
    for (const { what, files, images } of CASES) {
      it(what, async () => {
        const { conf, problems } = await open(files);
        for (const [image, expected] of Object.entries(images)) {
          const reference = parseReference(image);
          const sources = conf.sources(reference) ?? [
            { image: reference, location: '', insecure: false, isNamed: false },
          ];
          const failed = problems.length > 0 || sources.some(({ refusal }) => refusal?.includes('leads to'));
          const lines = sources.map(({ image: { name }, insecure, refusal }) =>
            [name, ...(insecure ? ['insecure'] : []), ...(refusal === undefined ? [] : ['blocked'])].join(' '),
          );
          // What is blocked is left out where something else is left.
          const open = expected.filter((line) => !line.endsWith(' blocked'));
          expect(failed ? ['error'] : lines, image).to.deep.equal(open.length > 0 ? open : expected.slice(-1));
        }
      });
    }
  });

  it('gives endpoints with the name, the scope and the credentials of each place', async () => {
    const text = `
      [[registry]]
      prefix = "example.com/foo"
      location = "internal.b:5000/bar"
      [[registry.mirror]]
      location = "m.b/hub"
      insecure = true
      [[registry.mirror]]
      location = "example.com/foo"`;
    const endpoints = await endpointsOf('example.com/foo/image:1', text);
    expect(lines(endpoints)).to.equal(
      '~m.b/v2 hub/image insecure | example.com/v2 foo/image configured | ~internal.b:5000/v2 bar/image',
    );
    expect(endpoints.map(({ name, host, headers }) => [name, host, headers])).to.deep.equal([
      ['m.b/hub', 'm.b', {}],
      ['example.com', 'example.com', {}],
      ['internal.b:5000/bar', 'internal.b:5000', {}],
    ]);
  });

  const hosts: [what: string, image: string, text: string, expected: string][] = [
    ['a host that it names', 'a.b/x', '[[registry]]\nlocation = "A.b"', 'a.b/v2 x configured'],
    ['a port that it does not name', 'a.b:22/x', '[[registry]]\nlocation = "a.b"', 'a.b:22/v2 x'],
    ['a host below a wildcard', 'a.b/x', '[[registry]]\nprefix = "*.b"\ninsecure = true', 'a.b/v2 x insecure'],
  ];
  for (const [what, image, text, expected] of hosts) {
    it(`judges the address of ${what} by who named it`, async () => {
      expect(lines(await endpointsOf(image, text))).to.equal(expected);
    });
  }

  it('has an endpoint that may lack manifests, whatever is asked after it', async () => {
    const text = '[[registry]]\nlocation = "quay.io"\n[[registry.mirror]]\nlocation = "m.b"';
    const endpoints = await endpointsOf('quay.io/x', text, { sparse: ['m.b'] });
    expect(endpoints.map(({ isSparse }) => isSparse)).to.deep.equal([true, undefined]);
  });

  it('counts for no registry that registries.mirrors names', async () => {
    const mirrors = { 'quay.io': { endpoints: ['m.b'], fallback: false, credentials: 'mirror' } } as const;
    const endpoints = await endpointsOf('quay.io/x', '[[registry]]\nlocation = "quay.io"\nblocked = true', { mirrors });
    expect(lines(endpoints)).to.equal('~m.b/v2 x ?ns=quay.io');
  });

  describe('refuses an image', () => {
    const rows: [what: string, text: string, problem: string][] = [
      ['of a blocked registry', 'location = "quay.io/a"\nblocked = true', 'quay.io/a is blocked by FILE'],
      [
        'of a blocked registry whose mirrors are for digests only',
        `location = "quay.io/a"\nblocked = true\n[[registry.mirror]]\nlocation = "m.b"\npull-from-mirror = "digest-only"`,
        'quay.io/a is blocked by FILE',
      ],
      [
        'whose name there is none',
        'prefix = "quay.io"\nlocation = "mirror"',
        'FILE leads to "mirror/a/x", which is not the full name of an image',
      ],
    ];
    for (const [what, text, problem] of rows) {
      it(what, async () => {
        const [endpoint] = await endpointsOf('quay.io/a/x:1', `[[registry]]\n${text}`);
        const refused = () => targetOf(endpoint ?? expect.fail('no endpoint'), parseReference('quay.io/a/x:1'));
        expect(refused)
          .to.throw(problem.replace('FILE', at('registries.conf')))
          .that.includes({ code: 'forbidden-address', temporary: false });
      });
    }
  });

  it('is asked by digest at the mirrors of a blocked registry', async () => {
    const text = '[[registry]]\nlocation = "quay.io"\nblocked = true\n[[registry.mirror]]\nlocation = "m.b/q"';
    const endpoints = await endpointsOf(`quay.io/x@${DIGEST}`, text);
    expect(lines(endpoints)).to.equal('~m.b/v2 q/x');
  });

  it('may be a file, without the drop-in files beside it', async () => {
    const files = {
      'registries.conf': '[[registry]]\nlocation = "quay.io"',
      'registries.conf.d/a.conf': '[[registry]]\nlocation = "gcr.io"',
    };
    const { conf } = await open(files, at('registries.conf'));
    expect([...conf.namedHosts()]).to.deep.equal(['quay.io']);
    expect(conf.paths).to.deep.equal([at('registries.conf')]);
  });

  it('names its hosts and paths', async () => {
    const text =
      '[[registry]]\nprefix = "*.a.b"\n[[registry.mirror]]\nlocation = "m.b:5000/x"\n[[registry]]\nprefix = "quay.io/a"\nlocation = "n.b"';
    const { conf } = await open({ 'registries.conf': text, 'registries.conf.d/a.conf': '', 'registries.conf.d/b': '' });
    expect([...conf.namedHosts()]).to.have.members(['m.b:5000', 'quay.io', 'n.b']);
    expect(conf.paths, 'its files are watched with it').to.deep.equal([at()]);
  });

  it('is empty without a path', async () => {
    const conf = createRegistriesConf('');
    expect(await conf.reload()).to.deep.equal([]);
    expect(conf.paths).to.deep.equal([]);
    expect(conf.sources(parseReference('nginx'))).to.equal(undefined);
  });

  const broken: [what: string, files: Record<string, string>, file: string, problem: RegExp][] = [
    ['nothing', {}, '', /^there is no registries\.conf and no registries\.conf\.d\/\*\.conf$/],
    ['a broken file', { 'registries.conf': '[[registry\n' }, 'registries.conf', /^line 1, column \d+: /],
    [
      'a broken drop-in file',
      { 'registries.conf': '', 'registries.conf.d/a.conf': '[[registry]]\nlocation = "a.b"\nblocked = 1' },
      'registries.conf.d/a.conf',
      /^registry\[0\]\.blocked: expected true or false, got a number$/,
    ],
    [
      'a broken mirror',
      { 'registries.conf': '[[registry]]\nlocation = "a.b"\n[[registry.mirror]]\nlocation = "u:p@m.b"' },
      'registries.conf',
      /^registry\[0\]\.mirror\[0\]\.location: /,
    ],
  ];
  for (const [what, files, file, problem] of broken) {
    it(`reports ${what}`, async () => {
      const { problems } = await open(files);
      expect(problems).to.have.lengthOf(1);
      expect(problems[0]?.file).to.equal(at(file));
      expect(problems[0]?.problem).to.match(problem);
    });
  }

  it('keeps what it read while a file is broken, and then reads it again', async () => {
    const opened = await open({ 'registries.conf': '[[registry]]\nprefix = "quay.io"\nlocation = "old.b"' });
    const there = () => opened.conf.sources(parseReference('quay.io/x'))?.map(({ image }) => image.name);
    await write({ 'registries.conf': '', 'registries.conf.d/a.conf': '[[registry]]' });
    expect(await opened.conf.reload()).to.have.lengthOf(1);
    expect(there()).to.deep.equal(['old.b/x']);
    expect([...opened.conf.namedHosts()]).to.deep.equal(['quay.io', 'old.b']);
    await write({ 'registries.conf.d/a.conf': '[[registry]]\nprefix = "quay.io"\nlocation = "new.b"' });
    expect(await opened.conf.reload()).to.deep.equal([]);
    expect(there()).to.deep.equal(['new.b/x']);
  });

  it('reports what it ignores, once', async () => {
    const { conf, ignored } = await open({ 'registries.conf': '[[registry]]\nlocation = "a.b"\nspeed = 1' });
    await conf.reload();
    expect(ignored.map(({ problem }) => problem)).to.deep.equal([
      'registry[0].speed: unknown field, ignored (as by the runtime); known fields: prefix, location, insecure, blocked, mirror-by-digest-only, pull-from-mirror, mirror',
    ]);
  });
});
