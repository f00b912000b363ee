import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import type { Platform } from '../../../src/kit/platform.ts';
import { lookIntoLayers } from '../../../src/oci/deep/look-inside.ts';
import { content, type FixturePlatform, type ImageFixture, index, MEDIA_TYPES } from '../../../testimg/build.ts';
import {
  archive,
  elf,
  type LayerEntry,
  type LayerSource,
  layeredImage,
  pe,
  type Start,
} from '../../../testimg/layers.ts';
import { startTestRegistry, type TestRegistry } from '../../simulator/registry/registry.ts';
import { startResolver } from '../server.ts';

const AMD64: FixturePlatform & Platform = { os: 'linux', architecture: 'amd64' };
const ARM64: FixturePlatform & Platform = { os: 'linux', architecture: 'arm64' };
const ACCESS = { namespace: 'default', pullSecrets: [], always: false };
const app = (architecture: 'amd64' | 'arm64', name = 'usr/bin/app'): LayerEntry => ({ name, bytes: elf(architecture) });
const script = (name: string, line: string): LayerEntry => ({ name, bytes: Buffer.from(`#!${line}\necho\n`) });
const link = (name: string, target: string): LayerEntry => ({ name, target });
const APP = '/usr/bin/app';
const LONG = `${'long/'.repeat(60)}app`;
const ENTRY = { Entrypoint: [APP] };
const directory = (name: string): LayerEntry => ({ name, type: '5' });

describe('looking inside images', () => {
  let registry: TestRegistry;
  before(async () => {
    registry = await startTestRegistry();
  });
  after(() => registry.stop());
  afterEach(() => registry.clearFaults());

  async function look(fixture: ImageFixture, platforms: readonly Platform[], now?: () => number) {
    registry.load('app', '1', fixture);
    const { resolver, stop } = startResolver([registry.host], now === undefined ? {} : { now });
    try {
      const task = { digest: fixture.root.digest, platforms, overrides: [{}], access: ACCESS };
      const signal = new AbortController().signal;
      return (await lookIntoLayers(resolver, `${registry.host}/app:1`, { ...task, signal })).flat();
    } finally {
      stop();
    }
  }

  /** Looks for what an image for arm64 starts; a text is its command. */
  async function find(layers: readonly LayerSource[], config: Start | string, expected: object): Promise<void> {
    const image = layeredImage(ARM64, layers, typeof config === 'string' ? { Cmd: [config] } : config);
    const [{ platform, bytesRead, ...found } = { platform: AMD64, bytesRead: 0 }] = await look(image, [ARM64]);
    expect(platform).to.deep.equal(ARM64);
    expect(found).to.deep.equal(expected);
  }

  /**
   * Layers, the bottom one first: programs (`arm64:path`), links (`path->target`), second names (`path=target`), directories (`path/`) and
   * whiteouts. Expected: the machine and the path of the program, or why it is unknown.
   */
  const paths: readonly (readonly [title: string, layers: string, command: string, expected: string])[] = [
    ['a program by its path', 'arm64:usr/bin/app', APP, `arm64 ${APP}`],
    ['a program that lies', 'amd64:usr/bin/app', APP, `amd64 ${APP}`],
    ['a program in PATH', 'arm64:usr/bin/app', 'app', `arm64 ${APP}`],
    [
      'a program in PATH that lies, although one before it in a lower layer does not',
      'arm64:usr/local/bin/app | amd64:usr/bin/app',
      'app',
      'arm64 /usr/local/bin/app',
    ],
    ['the upper of two', 'arm64:usr/bin/app | amd64:usr/bin/app', APP, `amd64 ${APP}`],
    ['names with ./', 'arm64:./usr/./bin//app', APP, `arm64 ${APP}`],
    ['names with /', 'arm64:/usr/bin/app', APP, `arm64 ${APP}`],
    ['names with ..', 'arm64:../../usr/x/../bin/app', APP, `arm64 ${APP}`],
    ['a long name', `arm64:${LONG}`, `/${LONG}`, `arm64 ${`/${LONG}`.slice(0, 197)}…`],
    ['a symbolic link, relative', 'arm64:opt/app-1 usr/bin/app->../../opt/app-1', 'app', `arm64 ${APP}`],
    ['a symbolic link to a lower layer', 'amd64:opt/a | usr/bin/app->/opt/a', 'app', `amd64 ${APP}`],
    ['a link of a directory in a lower layer', 'usr/bin/ bin->usr/bin | arm64:usr/bin/a', '/bin/a', 'arm64 /bin/a'],
    ['a link of a directory in an upper layer', 'arm64:v1/a amd64:now/a | now->v1', '/now/a', 'arm64 /now/a'],
    ['a directory over a link', 'amd64:usr/bin/app bin->usr/bin | bin/ arm64:bin/app', '/bin/app', 'arm64 /bin/app'],
    ['a program below a link of a lower layer', 'usr/bin/ bin->usr/bin | arm64:bin/app', '/bin/app', 'arm64 /bin/app'],
    ['a hard link of a multi-call program', 'arm64:bin/busybox bin/ls=bin/busybox', '/bin/ls', 'arm64 /bin/ls'],
    ['a hard link whose first name was replaced', 'arm64:bin/a bin/b=bin/a | amd64:bin/a', '/bin/b', 'arm64 /bin/b'],
    [
      'no hard link to a file of a lower layer',
      'arm64:bin/a | bin/b=bin/a',
      '/bin/b',
      '/bin/b is a second name of a file that its layer does not have before it',
    ],
    ['a loop of links', 'a->b b->/a', '/a', '/a is a loop of links'],
    ['a whiteout', 'amd64:usr/bin/app | usr/bin/.wh.app', APP, `${APP} is not in the layers`],
    ['a whiteout of a directory', 'amd64:usr/bin/app | .wh.usr', APP, `${APP} is not in the layers`],
    ['an opaque directory', 'amd64:usr/bin/app | usr/.wh..wh..opq usr/', APP, `${APP} is not in the layers`],
    ['a whiteout of a link', 'arm64:usr/bin/app | bin->x | .wh.bin bin->usr/bin', '/bin/app', 'arm64 /bin/app'],
    [
      'a program that a later layer puts back',
      'amd64:usr/bin/app | usr/bin/.wh.app | arm64:usr/bin/app',
      APP,
      `arm64 ${APP}`,
    ],
  ];
  for (const [title, layers, command, expected] of paths) {
    it(`finds ${title}`, async () => {
      const sources = layers.split(' | ').map((layer) => layer.split(' ').map(entryOf));
      const [machine, program = ''] = expected.split(' ');
      const findings = { arm64: agrees(program), amd64: lies(program) };
      const finding = machine === 'arm64' || machine === 'amd64' ? findings[machine] : unknown(machine ?? '', expected);
      await find(sources, command, finding);
    });
  }

  const file = (bytes?: Buffer) => [[{ name: 'app', ...(bytes && { bytes }) }]];
  const MACHO = Buffer.from('cffaedfe0c000001', 'hex');
  const rows: readonly (readonly [title: string, layers: readonly LayerSource[], Start | string, object])[] = [
    [
      'a program in the PATH of the image',
      [[app('arm64', 'opt/app')]],
      { Cmd: ['app'], Env: ['A=b', 'PATH=/none:/opt'] },
      agrees('/opt/app'),
    ],
    [
      'a program relative to the working directory',
      [[app('arm64', 'srv/bin/app')]],
      { Entrypoint: ['./bin/app'], WorkingDir: '/srv' },
      agrees('/srv/bin/app'),
    ],
    [
      'a script, and the shell behind a link',
      [[app('arm64', 'bin/busybox'), link('bin/sh', 'busybox')], [script('start.sh', '/bin/sh -e')]],
      { Entrypoint: ['/start.sh'], Cmd: ['x'] },
      { ...agrees('/bin/sh'), reason: '/start.sh is a script of /bin/sh -e; what a shell starts was not looked at' },
    ],
    [
      'a script of env',
      [[app('amd64', 'usr/local/bin/node'), script('cli.js', '/usr/bin/env -S node --flag')]],
      { Entrypoint: ['/cli.js'] },
      { ...lies('/usr/local/bin/node'), reason: '/cli.js is a script of /usr/bin/env -S node --flag' },
    ],
    [
      'scripts in a circle',
      [[script('a', '/b'), script('b', '/a')]],
      '/a',
      unknown('/a', '/b is a script of /a; /a is not followed any further'),
    ],
    [
      'a small init, and what it starts',
      [[app('arm64', 'sbin/tini'), app('amd64')]],
      { Entrypoint: ['tini', '-g', '-p', 'SIGTERM', '--'], Cmd: ['app', '--x'] },
      { ...lies(), reason: '/sbin/tini starts app' },
    ],
    [
      'a script for an interpreter that is not there',
      [[script('a', '/bin/none')]],
      '/a',
      unknown('/bin/none', '/a is a script of /bin/none; /bin/none is not in the layers'),
    ],
    ['Mach-O', file(MACHO), '/app', { ...lies('/app'), machine: 'Mach-O, a program for macOS' }],
    [
      'a program for Windows',
      file(pe('amd64')),
      '/app',
      { ...lies('/app'), machine: 'a Windows program (PE, x86-64)' },
    ],
    ['an empty file', file(), '/app', { ...unknown('/app', '/app is empty'), machine: 'empty' }],
    [
      'a sparse file',
      [[{ name: 'app', type: 'S' }]],
      '/app',
      unknown('/app', '/app is of the type SparseFile in its layer, which is not read'),
    ],
    ['nothing to start', [[app('arm64')]], {}, { verdict: 'unknown', reason: 'the image names no program to start' }],
    ['a layer without compression', [content(MEDIA_TYPES.ociTar, archive([app('arm64')]))], ENTRY, agrees()],
    [
      'a layer of several gzip members',
      [Buffer.concat([gzipSync(archive([directory('usr')], { isOpen: true })), gzipSync(archive([app('arm64')]))])],
      ENTRY,
      agrees(),
    ],
    [
      'a foreign layer below',
      [
        content('application/vnd.docker.image.rootfs.foreign.diff.tar.gzip', gzipSync(archive([app('arm64')]))),
        [directory('etc')],
      ],
      ENTRY,
      unknown('/usr/bin/app', '/usr/bin/app may be in a foreign layer, which is not in the registry and is not read'),
    ],
  ];
  for (const [title, ...row] of rows) it(`finds ${title}`, () => find(...row));

  it('finds what each platform of an index starts', async () => {
    const of = (stated: Platform, architecture: 'amd64' | 'arm64'): ImageFixture =>
      layeredImage(stated, [[app(architecture)]], ENTRY);
    const fixture = index([
      { of: of(AMD64, 'amd64'), platform: AMD64 },
      { of: of(AMD64, 'amd64'), platform: ARM64 },
    ]);
    const found = await look(fixture, [AMD64, ARM64]);
    expect(found.map(({ bytesRead, ...each }) => each)).to.deep.equal([
      { platform: AMD64, program: '/usr/bin/app', machine: 'x86-64', verdict: 'agrees' },
      { platform: ARM64, ...lies(), reason: 'its config says linux/amd64' },
    ]);
  });

  it('does not look at what an image for Windows starts', async () => {
    registry.clearRequests();
    const windows = { os: 'windows', architecture: 'amd64' };
    const fixture = layeredImage(windows, [[app('arm64')]], ENTRY);
    const [found] = await look(fixture, [windows]);
    expect(found).to.include({ verdict: 'unknown', reason: 'what an image for Windows starts is not looked at' });
    expect(registry.requests().filter(({ path }) => path.includes('/blobs/'))).to.deep.equal([]);
  });

  it('stops the download as soon as it has found the program', async () => {
    const rest = { name: 'rest', bytes: Buffer.alloc(64 * 1024 * 1024) };
    const fixture = layeredImage(ARM64, [content(MEDIA_TYPES.ociTar, archive([app('arm64'), rest]))], { Cmd: ['app'] });
    const [found] = await look(fixture, [ARM64]);
    expect(found?.verdict).to.equal('agrees');
    expect(found?.bytesRead).to.be.below(4 * 1024 * 1024);
  });

  it('asks for no layer below the one that has the program', async () => {
    registry.clearRequests();
    const fixture = layeredImage(ARM64, [[{ name: 'below' }], [app('arm64')]], ENTRY);
    await look(fixture, [ARM64]);
    const [, , lower] = fixture.blobs.map(({ digest }) => digest);
    const asked = registry.requests().map(({ path }) => path.slice(path.lastIndexOf('/') + 1));
    expect(asked).to.include(lower ?? '');
    expect(asked).not.to.include(fixture.blobs[1]?.digest);
  });

  /** Ten seconds pass from one look at this clock to the next. */
  function tenSecondsEach(): () => number {
    let time = 0;
    return () => (time += 10_000);
  }

  /** A small image whose program is behind many links along deep directories, in each directory of PATH, over many layers. */
  function labyrinth(): ImageFixture {
    const deep = Array.from({ length: 100 }, (_, index) => `d${index}`).join('/');
    const places = Array.from({ length: 16 }, (_, index) => `p${index}`);
    const links = places.flatMap((place) => [
      link(`${place}/app`, `/${deep}/${place}-0`),
      ...Array.from({ length: 20 }, (_, index) => link(`${deep}/${place}-${index}`, `/${deep}/${place}-${index + 1}`)),
    ]);
    const rest = Array.from({ length: 29 }, (_, index) => [directory(`e${index}`)]);
    const path = `PATH=${places.map((place) => `/${place}`).join(':')}`;
    return layeredImage(ARM64, [...rest, gzipSync(archive(links))], { Cmd: ['app'], Env: [path] });
  }

  for (const [when, now, limit] of [
    ['after so many look-ups', undefined, '100,000 look-ups along PATH and links'],
    ['at its deadline, even while it follows links', tenSecondsEach, '180 s'],
  ] as const) {
    it(`gives up ${when}`, async () => {
      const [found] = await look(labyrinth(), [ARM64], now?.());
      expect(found).to.include({ verdict: 'unknown', reason: `app was not reached within ${limit}` });
    });
  }

  it('finds the program of an image with many layers and many directories in PATH', async () => {
    const places = Array.from({ length: 20 }, (_, index) => `opt/tools/part-${index}/bin`);
    const layers = Array.from({ length: 120 }, (_, index) => [directory(`opt/tools/part-${index}/bin`)]);
    const fixture = layeredImage(ARM64, [[app('arm64', `${places.at(-1)}/app`)], ...layers], {
      Cmd: ['app'],
      Env: [`PATH=${places.map((place) => `/${place}`).join(':')}`],
    });
    const [found] = await look(fixture, [ARM64]);
    expect(found?.verdict).to.equal('agrees');
  });

  it('does not read hundreds of thousands of options of an init', async () => {
    const start = { Entrypoint: ['/usr/bin/tini', ...Array.from({ length: 300_000 }, () => '-s'), '/app'] };
    const [found] = await look(layeredImage(ARM64, [[app('arm64', 'usr/bin/tini')]], start), [ARM64]);
    expect(found).to.include(agrees('/usr/bin/tini'));
  });

  it('writes no file', async () => {
    // The directory of temporary files is shared with everything else on the machine, so this test has one of its own.
    const own = mkdtempSync(join(tmpdir(), 'archaware-deep-'));
    const { TMPDIR } = process.env;
    process.env.TMPDIR = own;
    try {
      await look(layeredImage(ARM64, [[app('arm64')]], ENTRY), [ARM64]);
      expect(readdirSync(own)).to.deep.equal([]);
    } finally {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
      rmSync(own, { recursive: true });
    }
  });

  it('says so if a layer that was read whole does not match its digest', async () => {
    const fixture = layeredImage(ARM64, [[directory('etc')]], ENTRY);
    const [config, layer] = fixture.blobs;
    if (config === undefined || layer === undefined) throw new Error('two blobs are expected');
    const other = { ...layer, bytes: gzipSync(archive([directory('var')])) };
    const [found] = await look({ ...fixture, blobs: [config, other] }, [ARM64]);
    expect(found?.reason).to.equal('/usr/bin/app was not found: a layer does not match its digest');
  });

  const broken: readonly (readonly [title: string, bytes: Buffer, reason: RegExp])[] = [
    ['is truncated', gzipSync(archive([app('arm64', 'a')])).subarray(0, 40), /cannot be decompressed/],
    ['is no archive', gzipSync(Buffer.alloc(4096, 'x')), /not a valid tar archive/],
    ['ends within a file', gzipSync(archive([app('arm64', 'a')]).subarray(0, 520)), /not a valid tar archive/],
    ['is compressed twice', gzipSync(gzipSync(archive([app('arm64')]))), /compressed twice/],
    ['says wrong sizes', gzipSync(archive([{ name: 'a', size: 7e9 }, app('arm64')])), /not a valid tar archive/],
  ];
  for (const [title, bytes, reason] of broken) {
    it(`is not sure where a layer ${title}`, async () => {
      const [found] = await look(layeredImage(ARM64, [bytes], ENTRY), [ARM64]);
      expect(found?.verdict).to.equal('unknown');
      expect(found?.reason).to.match(reason);
    });
  }
});

function agrees(program = APP) {
  return { program, machine: 'aarch64', verdict: 'agrees' };
}

function lies(program = APP) {
  return { program, machine: 'x86-64', verdict: 'lies' };
}

/** Reads an entry as the table of paths has it. */
function entryOf(text: string): LayerEntry {
  const [, path = '', sign, target = ''] = /^([^:=]*?)(:|->|=)(.*)$/.exec(text) ?? [];
  if (sign === ':') return app(path === 'arm64' ? path : 'amd64', target);
  if (sign === '->') return link(path, target);
  if (sign === '=') return { name: path, target, type: '1' };
  return text.endsWith('/') ? directory(text.slice(0, -1)) : { name: text };
}

function unknown(program: string, reason: string) {
  return { program, verdict: 'unknown', reason };
}
