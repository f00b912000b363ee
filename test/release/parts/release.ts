/** Making the releases. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Maintainer, type Released, sumsOf, tagsOf } from '../support/maintainer.ts';
import { VERSIONS } from '../support/names.ts';
import type { Rehearsal } from '../support/rehearsal.ts';

/** What a user of 0.2.1 sees. */
export const NEWS = 'the one of the second release';

export function theRelease(there: () => Rehearsal): void {
  describe('hack/release.sh', () => {
    const [first, second] = VERSIONS;

    it(`releases ${first}: its last line installs it`, async () => {
      const { maintainer, place, keep, offer } = there();
      await maintainer.git('tag', `v${first}`);
      const before = performance.now();
      const released = await maintainer.made([first]);
      console.log(`        ${seconds(before)} s`);
      keep(released);
      offer(released);
      expect(released.version).to.equal(first);
      expect(released.image).to.equal(`${place.host}/you/archaware-controller`);
      const install = `helm install archaware oci://${place.host}/you/charts/archaware-controller --version ${first}`;
      expect(released.install).to.equal(`${install} --namespace archaware --create-namespace`);
    });

    it('makes the same of the same commit, by another maintainer: other folder, language, time zone and umask', async () => {
      const { another, release, place } = there();
      const other = await another('elsewhere/of another maintainer');
      await other.git('tag', `v${first}`);
      const tags = await versionTags(place);
      const once = release(first);
      const twice = await withUmask(0o077, () =>
        other.made([first], { environment: { TZ: 'Asia/Tokyo', LC_ALL: 'da_DK.UTF-8' } }),
      );
      const [sums, same] = await Promise.all([sumsOf(once), sumsOf(twice)]);
      console.log(['', ...digestsOf(once, sums)].join('\n        ').trimEnd());
      expect(twice.imageDigest).to.equal(once.imageDigest);
      expect(twice.chartDigest).to.equal(once.chartDigest);
      expect(same).to.deep.equal(sums);
      // A release that is there already is completed, and nothing of it changes.
      expect(await versionTags(place)).to.deep.equal(tags);
    });

    it('has tagged nothing but the version: no latest', async () => {
      const { place, release } = there();
      const { image, chart, imageDigest, chartDigest } = release(first);
      const found = await tagsOf(place);
      const tags = Object.entries(found).filter(
        ([tag]) => tag.startsWith('you/') && !/:sha256-[0-9a-f]{64}$/.test(tag),
      );
      const short = (name: string) => name.slice(place.host.length + 1);
      expect(Object.fromEntries(tags)).to.deep.equal({
        [`${short(image)}:${first}`]: imageDigest,
        [`${short(chart)}:${first}`]: chartDigest,
      });
    });

    it('refuses another commit under a version that is published, and pushes nothing', async () => {
      const { another, place } = there();
      const liar = await another('another-commit');
      await change(liar, 'not the one that was released');
      await liar.git('tag', `v${first}`);
      const before = await tagsOf(place);
      const { code, stdout, stderr } = await liar.release([first]);
      console.log(`        exit code ${code}: ${stderr.trim().split('\n').at(-1)}`);
      expect(code, stdout + stderr).to.equal(1);
      expect(stderr).to.match(new RegExp(`^release\\.sh: .*${first.replaceAll('.', '\\.')}.*sha256:`, 'm'));
      expect(await tagsOf(place)).to.deep.equal(before);
    });

    it(`releases ${second}: the version set by npm run version:set, and a change that users see`, async () => {
      const { maintainer, keep, offer, release } = there();
      await maintainer.git('checkout', '--quiet', `v${first}`);
      await setVersion(there(), maintainer, second);
      await change(maintainer, NEWS);
      await maintainer.git('tag', `v${second}`);
      const released = await maintainer.made([second]);
      keep(released);
      offer(released);
      expect(released.imageDigest).not.to.equal(release(first).imageDigest);
    });
  });
}

const seconds = (since: number) => Math.round((performance.now() - since) / 1000);

function digestsOf({ imageDigest, chartDigest }: Released, sums: Readonly<Record<string, string>>): string[] {
  return [
    `image ${imageDigest}`,
    `chart ${chartDigest}`,
    ...Object.entries(sums).map(([name, sum]) => `${sum}  ${name}`),
  ];
}

/** The tags that people use, without those of signatures. */
async function versionTags(place: Rehearsal['place']) {
  return Object.fromEntries(Object.entries(await tagsOf(place)).filter(([tag]) => !/:sha256-/.test(tag)));
}

async function withUmask<T>(mask: number, act: () => Promise<T>): Promise<T> {
  const before = process.umask(mask);
  try {
    return await act();
  } finally {
    process.umask(before);
  }
}

/** Changes the summary of the command `run`, which the help shows, and commits that. */
async function change(maintainer: Maintainer, news: string): Promise<void> {
  const path = join(maintainer.checkout, 'src/cli/run/command.ts');
  const text = await readFile(path, 'utf8');
  const changed = text.replace('(the default)', `(the default; ${news})`);
  if (changed === text) throw new Error(`${path} has no "(the default)"`);
  await writeFile(path, changed);
  await maintainer.commit(`feat: ${news}`);
}

/** What docs/development/releasing.md says: what is new goes into the changelog, and one command sets the version everywhere. */
async function setVersion({ place }: Rehearsal, { checkout }: Maintainer, version: string): Promise<void> {
  const path = join(checkout, 'CHANGELOG.md');
  const text = await readFile(path, 'utf8');
  const news = `### In short\n\n- The help of \`run\` says that it is ${NEWS}.\n`;
  const changed = text.replace(/^## Unreleased\n/m, (heading) => `${heading}\n${news}`);
  if (changed === text) throw new Error(`${path} has no "## Unreleased"`);
  await writeFile(path, changed);
  await place.must(['npm', 'run', '--silent', 'version:set', '--', version], { cwd: checkout });
}
