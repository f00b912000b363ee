import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createImageCache, EVERYBODY, type ImageCache, type ImageFacts } from '../../../src/oci/cache/cache.ts';
import { type CacheFile, createCacheFile } from '../../../src/oci/cache/cache-file.ts';
import { sealed } from '../../../src/oci/cache/seal.ts';
import { needsPosix } from '../../support/platforms.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const SOURCE = 'r.example.com';
const digestOf = (number: number): string => `sha256:${number.toString(16).padStart(64, '0')}`;
const found: ImageFacts = {
  platforms: [
    { os: 'linux', architecture: 'amd64' },
    { os: 'linux', architecture: 'arm', variant: 'v7' },
  ],
  skipped: [{ digest: digestOf(999), reason: 'an attestation' }, { reason: 'of type "x\\u{1b}"' }],
  isIndex: true,
};

describe('the cache file', () => {
  let directory: string;
  let file: string;
  let problems: (string | undefined)[];
  let timers: { wait: number; run: () => void }[];
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-cache-'));
    file = join(directory, 'cache.json');
    problems = [];
    timers = [];
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  function use(cache: ImageCache, options: { file?: string; now?: number; maxEntries?: number } = {}): CacheFile {
    return createCacheFile({
      file: options.file ?? file,
      cache,
      maxEntries: options.maxEntries ?? 100,
      now: () => options.now ?? NOW,
      onProblem: (problem) => problems.push(problem),
      schedule(wait, run) {
        const timer = { wait, run };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
    });
  }

  /** A cache with a tag and a digest for each of the numbers, used in this order. */
  function filled(...numbers: number[]): ImageCache {
    const cache = createImageCache(100);
    for (const number of numbers) {
      const digest = digestOf(number);
      cache.setDigest(digest, found);
      cache.setTag(`r.example.com/x:${number}`, EVERYBODY, { digest, found, checkedAt: NOW - number, source: SOURCE });
    }
    return cache;
  }

  async function write(cache: ImageCache): Promise<string> {
    const written = use(cache);
    written.changed();
    await written.close();
    return readFile(file, 'utf8');
  }

  /** Writes a file with the right checksum of its text. */
  const put = (text: string): Promise<void> =>
    writeFile(file, [...sealed([text.replace(/,"sha256":"\w+"\}\n$/, '}\n')])].join(''));

  async function load(options: { now?: number; maxEntries?: number } = {}): Promise<ImageCache> {
    const cache = createImageCache(100);
    await use(cache, options).load();
    return cache;
  }

  const namesIn = (cache: ImageCache): string[] => cache.sharedTags(100).map(([name]) => name);

  const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
    while (!(await condition())) await new Promise((resolve) => setImmediate(resolve));
  };
  /** Runs the timer that is set; returns its delay. */
  const fire = (): number | undefined => {
    const timer = timers.shift();
    timer?.run();
    return timer?.wait;
  };
  const exists = (path: string): Promise<boolean> =>
    stat(path).then(
      () => true,
      () => false,
    );

  it('restores what was written, in its order of use', async () => {
    const cache = filled(1, 2, 3);
    cache.setTag('r.example.com/x:2', EVERYBODY, {
      digest: digestOf(2),
      found,
      checkedAt: NOW - 2,
      source: 'mirror.example.com/hub',
      etag: 'W/"x"',
      headless: true,
    });
    cache.digest(digestOf(1));
    await write(cache);
    const again = await load();
    expect(again.sharedDigests(100)).to.deep.equal(cache.sharedDigests(100));
    expect(again.sharedTags(100)).to.deep.equal(cache.sharedTags(100));
    expect(problems).to.deep.equal([]);
  });

  it('keeps the order of use of thousands', async () => {
    const cache = createImageCache(20_000);
    for (let number = 0; number < 12_000; number += 1) cache.setDigest(digestOf(number), found);
    const written = use(cache, { maxEntries: 20_000 });
    written.changed();
    await written.close();
    const again = createImageCache(20_000);
    expect(await use(again, { maxEntries: 20_000 }).load()).to.deep.equal({ digests: 12_000, tags: 0 });
    const orders = [cache, again].map((each) =>
      each
        .sharedDigests(20_000)
        .map(([digest]) => digest)
        .join(),
    );
    expect(orders[1] === orders[0]).to.equal(true);
  });

  it('is one JSON object with a version, for its owner only, and leaves nothing else behind', async function () {
    needsPosix(this, 'permission');
    const text = await write(filled(1));
    const { sha256, ...json } = JSON.parse(text);
    const { platforms, skipped } = found;
    expect(sha256).to.equal(
      createHash('sha256')
        .update(text.slice(0, text.lastIndexOf('},"sha256"')))
        .digest('hex'),
    );
    expect(json).to.deep.equal({
      version: 2,
      digests: { [digestOf(1)]: { platforms, skipped, index: true } },
      tags: { 'r.example.com/x:1': { digest: digestOf(1), checkedAt: NOW - 1, source: SOURCE } },
    });
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect(await readdir(directory)).to.deep.equal(['cache.json']);
    expect(JSON.parse(await write(createImageCache(9)))).to.deep.include({ version: 2, digests: {}, tags: {} });
    expect(await use(createImageCache(9)).load()).to.deep.equal({ digests: 0, tags: 0 });
  });

  it("never contains what a pod's credential found out", async () => {
    const cache = filled(1);
    const entry = { digest: digestOf(1), found, checkedAt: NOW, source: SOURCE };
    cache.setTag('r.example.com/private:1', 'c2VjcmV0LWZpbmdlcnByaW50', entry);
    const text = await write(cache);
    expect(text)
      .to.include('r.example.com/x:1')
      .and.not.match(/private|c2VjcmV0/);
  });

  it('contains a tag whose digest was forgotten in memory', async () => {
    const cache = createImageCache(1);
    cache.setTag('r.example.com/a:1', EVERYBODY, { digest: digestOf(1), found, checkedAt: NOW, source: SOURCE });
    cache.setDigest(digestOf(2), found);
    await write(cache);
    const again = await load();
    expect(again.tag('r.example.com/a:1', EVERYBODY)?.found).to.deep.equal(found);
    expect(again.sharedDigests(9).map(([digest]) => digest)).to.deep.equal([digestOf(2), digestOf(1)]);
  });

  it('writes and reads only the most recently used entries if there are too many', async () => {
    const cache = filled(1, 2, 3, 4);
    const small = use(cache, { maxEntries: 3 });
    small.changed();
    await small.close();
    expect(namesIn(await load())).to.deep.equal([4, 3, 2].map((number) => `r.example.com/x:${number}`));
    expect(namesIn(await load({ maxEntries: 2 }))).to.deep.equal([4, 3].map((number) => `r.example.com/x:${number}`));
  });

  it('of an older version contains no images with an architecture that Go does not have: they are looked up again', async () => {
    const text = await write(filled(1, 2));
    const strange = text.replace('"architecture":"amd64"', '"architecture":"x64"');
    expect(strange).not.to.equal(text);
    await put(strange);
    expect(namesIn(await load())).to.have.lengthOf(1);
    expect(problems).to.deep.equal([]);
  });

  it('restores which container runtime alone takes the platforms', async () => {
    const cache = createImageCache(9);
    const facts = { ...found, only: 'containerd' as const };
    cache.setDigest(digestOf(1), facts);
    await write(cache);
    expect((await load()).sharedDigests(9)).to.deep.equal([[digestOf(1), facts]]);
  });

  it('restores that a single manifest is a bundle, which no index is', async () => {
    const cache = createImageCache(9);
    const single = { platforms: found.platforms.slice(0, 1), skipped: [], isIndex: false };
    const facts = { ...single, isBundle: true as const };
    cache.setDigest(digestOf(1), facts);
    cache.setDigest(digestOf(2), { ...facts, isIndex: true });
    await write(cache);
    expect((await load()).sharedDigests(9)).to.deep.equal([
      [digestOf(2), { ...single, isIndex: true }],
      [digestOf(1), facts],
    ]);
  });

  it('leaves out an image that is made to fill the file', async () => {
    const cache = filled(1);
    const skipped = Array.from({ length: 1000 }, (_, index) => ({ digest: digestOf(index), reason: 'x' }));
    const huge = { ...found, skipped };
    cache.setDigest(digestOf(2), huge);
    cache.setTag('r.example.com/huge:1', EVERYBODY, { digest: digestOf(2), found: huge, checkedAt: 1, source: SOURCE });
    await write(cache);
    const again = await load();
    expect(again.sharedDigests(9).map(([digest]) => digest)).to.deep.equal([digestOf(1)]);
    expect(namesIn(again)).to.deep.equal(['r.example.com/x:1']);
    expect(problems).to.deep.equal([]);
  });

  describe('is not trusted', () => {
    const platforms = [{ os: 'linux', architecture: 'amd64' }];
    const good = { [digestOf(1)]: { platforms, skipped: [], index: true } };
    const tag = { digest: digestOf(1), checkedAt: NOW, source: SOURCE };
    const digests: [what: string, digests: object][] = [
      ['an unknown runtime', { [digestOf(2)]: { platforms, skipped: [], index: true, only: 'x' } }],
      ['a name that is not a digest', { 'sha256:abc': { platforms, skipped: [], index: true } }],
      [
        'a prototype',
        JSON.parse(`{"__proto__":{"platforms":[{"os":"linux","architecture":"amd64"}],"skipped":[],"index":true}}`),
      ],
      ['no object', { [digestOf(2)]: [] }],
      ['no platforms', { [digestOf(2)]: { skipped: [], index: true } }],
      ['an empty list of platforms', { [digestOf(2)]: { platforms: [], skipped: [], index: true } }],
      [
        'an invalid architecture',
        { [digestOf(2)]: { platforms: [{ os: 'linux', architecture: 'a\nb' }], skipped: [], index: true } },
      ],
      [
        'a platform that is unknown',
        { [digestOf(2)]: { platforms: [{ os: 'unknown', architecture: 'x' }], skipped: [], index: true } },
      ],
      ['one bad platform of two', { [digestOf(2)]: { platforms: [...platforms, null], skipped: [], index: true } }],
      ['nothing that says whether it is an index', { [digestOf(2)]: { platforms, skipped: [] } }],
      ['no list of skipped entries', { [digestOf(2)]: { platforms, skipped: {}, index: true } }],
    ];
    const text = (entries: object, tags: object): string => {
      const lines = (object: object): string =>
        Object.entries(object)
          .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`)
          .join(',\n');
      return `{"version":2,"digests":{\n${lines(entries)}\n},"tags":{\n${lines(tags)}\n}}\n`;
    };
    for (const [what, bad] of digests) {
      it(`and a digest with ${what} is left out`, async () => {
        await put(text({ ...good, ...bad }, {}));
        expect((await load()).sharedDigests(9)).to.deep.equal([
          [digestOf(1), { platforms, skipped: [], isIndex: true }],
        ]);
        expect(problems).to.deep.equal([]);
      });
    }

    const tags: [what: string, name: string, entry: object][] = [
      ['an invalid name', 'r.example.com/X:1', tag],
      ['a name that is not canonical', 'nginx:1', tag],
      ['a name with a digest', `r.example.com/x@${digestOf(1)}`, tag],
      ['a name that is too long', `r.example.com/${'x'.repeat(2000)}:1`, tag],
      ['a digest that is not in the file', 'r.example.com/x:1', { ...tag, digest: digestOf(2) }],
      ['no digest', 'r.example.com/x:1', { ...tag, digest: undefined }],
      ['an invalid time', 'r.example.com/x:1', { ...tag, checkedAt: '5' }],
      ['a time before the epoch', 'r.example.com/x:1', { ...tag, checkedAt: -5 }],
      ['an unprintable source', 'r.example.com/x:1', { ...tag, source: 'a\u001b[2J' }],
      ['an endless source', 'r.example.com/x:1', { ...tag, source: 'a'.repeat(2000) }],
      ['no source', 'r.example.com/x:1', { ...tag, source: undefined }],
    ];
    for (const [what, name, entry] of tags) {
      it(`and a tag with ${what} is left out`, async () => {
        await put(text(good, { 'r.example.com/y:1': tag, [name]: entry }));
        expect(namesIn(await load())).to.deep.equal(['r.example.com/y:1']);
        expect(problems).to.deep.equal([]);
      });
    }

    const kinds: [what: string, entry: object, expected: boolean | undefined][] = [
      ['an index', { platforms, skipped: [], index: true }, true],
      ['a single manifest', { platforms, skipped: [], index: false }, false],
      ['an entry that does not say it', { platforms, skipped: [] }, undefined],
      ['a single manifest that left something out', { platforms, skipped: [{ reason: 'x' }], index: false }, true],
      [
        'a single manifest with two platforms',
        { platforms: [...platforms, { os: 'linux', architecture: 'arm' }], skipped: [], index: false },
        true,
      ],
      ['anything else', { platforms, skipped: [], index: 'no' }, undefined],
    ];
    for (const [what, entry, expected] of kinds) {
      it(`and ${what} counts as ${expected === undefined ? 'unknown' : expected ? 'an index' : 'a single manifest'}`, async () => {
        await put(text({ [digestOf(1)]: entry }, {}));
        const [read] = (await load()).sharedDigests(9);
        expect(read?.[1].isIndex).to.equal(expected);
      });
    }

    it('and spellings, future times and strange texts are normalised', async () => {
      const spelled = {
        platforms: [{ os: 'Linux', architecture: 'x86_64', variant: '\n' }],
        skipped: [{ reason: 'a\nb', digest: 'x' }, 5],
        index: true,
      };
      const strange = { ...tag, checkedAt: Number.POSITIVE_INFINITY, etag: 'a\r\nb', headless: 'yes', owner: 'x' };
      const infinite = text({ [digestOf(1)]: spelled }, { 'r.example.com/y:1': strange }).replace('null', '1e999');
      await put(infinite);
      expect((await load()).sharedTags(9)).to.deep.equal([
        [
          'r.example.com/y:1',
          { ...tag, found: { platforms, skipped: [{ reason: 'a\\u{a}b' }], isIndex: true }, checkedAt: NOW },
        ],
      ]);
    });
  });

  describe('is renamed', () => {
    const rows: [what: string, make: (good: string) => string, problem: RegExp][] = [
      ['if it is not JSON', () => 'not a cache', /is not a cache file of archaware;/],
      ['if it is empty', () => '', /is not a cache file of archaware;/],
      ['if it is JSON of another program', () => '{"name":"x"}', /is not a cache file of archaware;/],
      [
        'if it is of another version',
        (good) => good.replace('"version":2', '"version":3'),
        /is of version 3, which this program/,
      ],
      [
        'if it is of an earlier version, which had platforms that no container runtime takes',
        (good) => good.replace('"version":2', '"version":1'),
        /is of version 1, which an earlier release wrote; it was renamed to .*, and images are looked up again/,
      ],
      ['if it was cut off within an entry', (good) => good.slice(0, good.length / 2), /is damaged or cut off;/],
      ['if it was cut off between two lines', (good) => good.slice(0, good.lastIndexOf('},"sha256"')), /is cut off;/],
      ['if one bit of it is wrong', (good) => good.replace('amd64', 'amd65'), /is damaged or cut off;/],
      [
        'if it has no checksum',
        (good) => good.replace(/,"sha256":"\w+"\}/, '}'),
        /is damaged: its checksum is missing or wrong;/,
      ],
      ['if an entry is damaged', (good) => good.replace('"platforms":[', '"platforms":'), /is damaged or cut off;/],
      ['if a line has no end', (good) => good.replace('\n', `\n"x":"${'x'.repeat(100_000)}",\n`), /is damaged/],
      ['if it is two files in one', (good) => good + good, /is damaged or cut off;/],
      [
        'if it has zeros, as after a power cut',
        (good) => '\0'.repeat(good.length),
        /is not a cache file of archaware;/,
      ],
      ['if it has more than 64 MiB', (good) => good + ' '.repeat(64 * 1024 * 1024), /is larger than 67108864 bytes;/],
    ];
    for (const [what, make, problem] of rows) {
      it(what, async () => {
        const bad = make(await write(filled(1, 2, 3)));
        await writeFile(file, bad);
        await writeFile(`${file}.corrupt`, 'an older one');
        const cache = createImageCache(9);
        const restarted = use(cache);
        expect(await restarted.load()).to.deep.equal({ digests: 0, tags: 0 });
        expect(problems).to.have.length(1);
        expect(problems[0])
          .to.match(problem)
          .and.to.match(/^images\.cache\.file: .*it was renamed to .*\.corrupt/);
        expect(cache.sharedDigests(9)).to.deep.equal([]);
        expect((await readFile(`${file}.corrupt`, 'utf8')) === bad).to.equal(true);
        // The cache goes on, and the file is written again.
        restarted.changed();
        await restarted.close();
        expect(problems.slice(1)).to.deep.equal([undefined]);
        expect((await load()).sharedTags(9)).to.deep.equal([]);
        expect(problems).to.have.length(2);
      });
    }

    it('and if that fails, the problem is reported and the cache goes on', async () => {
      await writeFile(file, 'bad');
      await mkdir(`${file}.corrupt`);
      await load();
      expect(problems[0]).to.match(/is not a cache .* cannot be renamed to .*\.corrupt \(E(ISDIR|PERM)\)/);
      await write(filled(1));
      expect(namesIn(await load())).to.deep.equal(['r.example.com/x:1']);
    });
  });

  it('may be absent', async () => {
    await load();
    expect(problems).to.deep.equal([]);
  });

  it('is written 10 s after the first of several changes, and again only after another one', async () => {
    const cache = filled(1);
    const written = use(cache);
    for (let change = 0; change < 3; change += 1) written.changed();
    expect(timers.map(({ wait }) => wait)).to.deep.equal([10_000]);
    fire();
    await until(() => exists(file));
    await written.close();
    expect(timers).to.deep.equal([]);
    const { mtimeMs } = await stat(file);
    await written.close();
    expect((await stat(file)).mtimeMs).to.equal(mtimeMs);
  });

  it('is written once more for what changes while it is written', async () => {
    const cache = filled(1);
    const written = use(cache);
    written.changed();
    fire();
    written.changed();
    expect(timers).to.deep.equal([]);
    await until(() => timers.length > 0);
    expect(timers.map(({ wait }) => wait)).to.deep.equal([10_000]);
    await written.close();
    expect(timers).to.deep.equal([]);
    written.changed();
    expect(timers).to.deep.equal([]);
  });

  it('is reported once if it cannot be written, tried again after a minute, and reported again when that works', async () => {
    const target = join(directory, 'missing', 'cache.json');
    const cache = filled(1);
    const written = use(cache, { file: target });
    await written.load();
    const problem = `images.cache.file: ${target} cannot be written (ENOENT); create the directory ${join(directory, 'missing')}. It is tried once a minute`;
    expect(problems).to.deep.equal([problem]);
    written.changed();
    for (const wait of [10_000, 60_000]) {
      expect(fire()).to.equal(wait);
      await until(() => timers.length > 0);
    }
    expect(problems).to.deep.equal([problem]);
    await mkdir(join(directory, 'missing'));
    expect(fire()).to.equal(60_000);
    await until(() => problems.length > 1);
    expect(problems).to.deep.equal([problem, undefined]);
    expect(JSON.parse(await readFile(target, 'utf8'))).to.have.property('version', 2);
    await rm(join(directory, 'missing'), { recursive: true });
    written.changed();
    await written.close();
    expect(problems).to.deep.equal([problem, undefined, problem]);
  });

  const pipe = () => join(directory, 'pipe');
  const places: [what: string, place: () => string, problem: RegExp][] = [
    ['a directory', () => directory, /\(EISDIR\); this is a directory: name a file in it/],
    ['a pipe', pipe, /\(ENOTFILE\); this is a device, a pipe or a socket: name a file/],
    ['below a file', () => join(file, 'x'), /\(ENOTDIR\); create the directory/],
  ];
  for (const [what, place, problem] of places) {
    it(`is neither read nor replaced if it is ${what}`, async function () {
      needsPosix(this, 'pipe');
      await writeFile(file, 'x');
      execFileSync('mkfifo', [pipe()]);
      const cache = createImageCache(9);
      const odd = use(cache, { file: place() });
      expect(await odd.load()).to.deep.equal({ digests: 0, tags: 0 });
      odd.changed();
      await odd.close();
      expect(problems).to.have.length(2);
      expect(problems[0])
        .to.match(/cannot be read/)
        .and.to.match(problem);
      expect(problems[1])
        .to.match(/cannot be written/)
        .and.to.match(problem);
      expect((await stat(pipe())).isFIFO()).to.equal(true);
      expect(await readFile(file, 'utf8')).to.equal('x');
    });
  }

  it('is cleared of temporary files of dead processes, but not of those that may be in use', async () => {
    const now = Date.now();
    const [old, young, other] = ['cache.json.0123456789ab.tmp', 'cache.json.ba9876543210.tmp', 'cache.json.mine.tmp'];
    for (const name of [old, young, other]) await writeFile(join(directory, name), 'x');
    for (const name of [old, other]) await utimes(join(directory, name), 0, (now - 120_000) / 1000);
    const written = use(filled(1), { now });
    written.changed();
    await written.close();
    expect((await readdir(directory)).sort()).to.deep.equal(['cache.json', other, young].sort());
  });

  it('stays whole when several processes write it', async function () {
    needsPosix(this, 'rename');
    const files = Array.from({ length: 8 }, (_, index) =>
      use(filled(...Array.from({ length: 50 }, (_, n) => index * 50 + n))),
    );
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        files.map(async (each) => {
          each.changed();
          await each.close();
        }),
      );
      expect(namesIn(await load())).to.have.length(50);
    }
    expect(problems).to.deep.equal([]);
    expect(await readdir(directory)).to.deep.equal(['cache.json']);
  });
});
