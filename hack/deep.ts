// Measures `inspect --deep` on twenty images of real shapes, made of files of this machine: bytes read against bytes of the image, time,
// and memory. Usage: npm run build && npx tsx hack/deep.ts [DIRECTORY with unpacked Debian packages: busybox-static, dash, tini, openjdk-17-jre-headless [NODE]]
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { startTestRegistry } from '../test/simulator/registry/registry.ts';
import { content, MEDIA_TYPES } from '../testimg/build.ts';
import { archive, elf, type LayerEntry, type LayerSource, layeredImage, type Start } from '../testimg/layers.ts';

const AMD64 = { os: 'linux', architecture: 'amd64' };
const packages = resolve(process.argv[2] ?? 'packages');
/** The Node.js that runs the program. */
const interpreter = process.argv[3] ?? process.execPath;
const MOST = 4 * 1024 * 1024 * 1024;

/** A layer of files of this machine, as GNU tar and gzip (or zstd) write it. */
function real(
  directory: string,
  paths: readonly string[],
  compression: 'gzip' | 'zstd' | 'none' = 'gzip',
): LayerSource {
  const tar = execFileSync('tar', ['-C', directory, '-cf', '-', '--owner=0', '--group=0', ...paths], {
    maxBuffer: MOST,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  if (compression === 'gzip') return gzipSync(tar, { level: 1 });
  if (compression === 'none') return content(MEDIA_TYPES.ociTar, tar);
  const packed = execFileSync('zstd', ['-q', '-c'], { input: tar, maxBuffer: MOST });
  return content('application/vnd.oci.image.layer.v1.tar+zstd', packed);
}

const file = (name: string, path: string, mode = '755'): LayerEntry => ({ name, bytes: readFileSync(path), mode });
const layer = (entries: readonly LayerEntry[]): LayerSource => gzipSync(archive(entries), { level: 1 });
const script = (name: string, line: string): LayerEntry => ({ name, bytes: Buffer.from(`#!${line}\nexec "$@"\n`) });
const link = (name: string, target: string): LayerEntry => ({ name, target });
const busybox = join(packages, 'bin/busybox');
const java = 'usr/lib/jvm/java-17-openjdk-amd64';

/** The usual directories of Debian, with their links. */
const debian = real('/', ['bin', 'lib', 'usr/bin', 'usr/lib/x86_64-linux-gnu/libc.so.6', 'usr/share/doc', 'etc']);
const node = layer([
  file('usr/local/bin/node', process.execPath),
  script('usr/local/bin/docker-entrypoint.sh', '/bin/sh'),
]);
const modules = real(resolve('.'), ['node_modules']);
const tiny = layer([{ name: 'etc/passwd', bytes: Buffer.from('root:x:0:0::/:/bin/sh\n'), mode: '644' }]);
const go = '/usr/local/go/bin/go';
const alpine = layer([
  { name: 'bin/', type: '5' },
  file('bin/busybox', busybox),
  ...['sh', 'ls', 'cat', 'env'].map((name) => link(`bin/${name}`, '/bin/busybox')),
]);

const IMAGES: readonly (readonly [title: string, layers: readonly LayerSource[], config: Start])[] = [
  ['scratch, Go static', [layer([file('app', go)])], { Entrypoint: ['/app'] }],
  [
    'distroless, Go static',
    [real('/', ['etc', 'usr/share/zoneinfo']), layer([file('app', go)])],
    { Entrypoint: ['/app'] },
  ],
  ['busybox, shell', [alpine], { Cmd: ['sh'] }],
  [
    'busybox, hard links',
    [layer([file('bin/busybox', busybox), { name: 'bin/httpd', type: '1', target: 'bin/busybox' }])],
    { Cmd: ['httpd'] },
  ],
  ['Alpine-like, script', [alpine, layer([script('start.sh', '/bin/sh')])], { Entrypoint: ['/start.sh'] }],
  ['Debian, bash', [debian], { Cmd: ['bash'] }],
  ['Debian, /bin is a link', [debian, layer([file('usr/bin/app', go)])], { Entrypoint: ['/bin/app'] }],
  ['Debian, app in a small top layer', [debian, layer([file('usr/local/bin/app', busybox)])], { Entrypoint: ['app'] }],
  ['Node.js, node', [debian, node, modules], { Cmd: ['node', 'main.js'] }],
  ['Node.js, docker-entrypoint.sh', [debian, node, modules], { Entrypoint: ['docker-entrypoint.sh'], Cmd: ['node'] }],
  [
    'Node.js, script of env',
    [debian, node, layer([script('app/cli.js', '/usr/bin/env node')])],
    { Entrypoint: ['/app/cli.js'] },
  ],
  [
    'Java',
    [debian, real(packages, [java]), layer([{ name: 'app.jar', bytes: Buffer.alloc(30_000_000, 'jar') }])],
    { Entrypoint: [`/${java}/bin/java`, '-jar', '/app.jar'] },
  ],
  [
    'Java by PATH and links',
    [
      debian,
      real(packages, [java]),
      layer([link('usr/bin/java', '/etc/alternatives/java'), link('etc/alternatives/java', `/${java}/bin/java`)]),
    ],
    { Entrypoint: ['java'] },
  ],
  ['Python', [debian, tiny], { Cmd: ['python3'] }],
  [
    'tini and app',
    [debian, layer([file('usr/bin/tini', join(packages, 'usr/bin/tini')), file('srv/app', busybox)])],
    { Entrypoint: ['tini', '--'], Cmd: ['/srv/app'] },
  ],
  ['forty layers', [alpine, ...Array.from({ length: 39 }, () => tiny)], { Cmd: ['sh'] }],
  ['a big top layer without the program', [alpine, real(packages, ['usr'])], { Cmd: ['sh'] }],
  ['zstd', [real('/', ['usr/bin'], 'zstd'), real(packages, ['bin'], 'zstd')], { Entrypoint: ['/bin/busybox'] }],
  ['no compression', [real(packages, ['usr', 'bin'], 'none')], { Entrypoint: ['/bin/busybox'] }],
  [
    'a lie: a program for arm64',
    [debian, layer([{ name: 'usr/bin/app', bytes: elf('arm64', 20_000_000) }])],
    { Entrypoint: ['/usr/bin/app'] },
  ],
];

type Run = {
  readonly verdict: string;
  readonly bytesRead: number;
  readonly seconds: number;
  readonly mebibytes: number;
  readonly text: string;
};

/** Runs the program, and reads the most memory that it ever had. */
async function inspect(image: string, host: string, temporary: string): Promise<Run> {
  const started = performance.now();
  const args = ['dist/main.js', 'inspect', '--deep', image, '-o', 'json', '--registries.insecure', host];
  const child = spawn(interpreter, args, {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let [output, most] = ['', 0];
  child.stdout.on('data', (text) => {
    output += text;
  });
  const timer = setInterval(() => {
    try {
      most = Math.max(most, Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0));
    } catch {
      // It has ended.
    }
  }, 10);
  await new Promise((done) => child.on('close', done));
  clearInterval(timer);
  const [{ deep = [] } = {}] = JSON.parse(output);
  const [{ verdict = 'none', bytesRead = 0, program = '', machine = '', reason = '' } = {}] = deep;
  const text = [program, machine, reason].filter(Boolean).join(', ');
  return { verdict, bytesRead, seconds: (performance.now() - started) / 1000, mebibytes: most / 1024, text };
}

const registry = await startTestRegistry();
const temporary = mkdtempSync(join(tmpdir(), 'deep-'));
const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
console.log(
  '| image | layers | MiB | read, MiB | share | seconds | memory, MiB | verdict | what |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
);
for (const [index, [title, layers, config]] of IMAGES.entries()) {
  const fixture = layeredImage(AMD64, layers, config);
  // A layer that is there twice is stored once, and downloaded as often as it is read.
  const digests = new Map(fixture.blobs.map(({ digest, bytes }) => [digest, bytes.length]));
  const listed: readonly { digest: string }[] = JSON.parse(fixture.root.bytes.toString()).layers;
  const bytes = listed.reduce((sum, { digest }) => sum + (digests.get(digest) ?? 0), 0);
  registry.load(`image-${index}`, '1', fixture);
  const run = await inspect(`${registry.host}/image-${index}:1`, registry.host, temporary);
  const share = `${((100 * run.bytesRead) / bytes).toFixed(1)} %`;
  console.log(
    `| ${[title, layers.length, mib(bytes), mib(run.bytesRead), share, run.seconds.toFixed(1), run.mebibytes.toFixed(0), run.verdict, run.text].join(' | ')} |`,
  );
}
console.log(
  `files in the empty TMPDIR: ${readdirSync(temporary).filter((name) => statSync(join(temporary, name)).isFile()).length}`,
);
rmSync(temporary, { recursive: true });
await registry.stop();
