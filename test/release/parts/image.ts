/** The image of each platform: whether its Node.js and the program run there. */
import { copyFile, mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { at, listAt, textAt } from '../../../hack/cluster/json.ts';
import { ARCHITECTURES, OWN_ARCHITECTURE } from '../../e2e/support/base-image.ts';
import type { Program } from '../../e2e/support/programs.ts';
import { emulatorOf, NODE_VERSIONS } from '../support/base.ts';
import { manifestOf } from '../support/maintainer.ts';
import { VERSIONS } from '../support/names.ts';
import { type Rehearsal, ROOT } from '../support/rehearsal.ts';

const [FIRST] = VERSIONS;

export function theImage(there: () => Rehearsal): void {
  describe('the image', () => {
    it('is for four platforms', async () => {
      const { place, release } = there();
      const index = await manifestOf(place, `${release(FIRST).image}:${FIRST}`);
      const platforms = listAt(index, 'manifests').map((one) => at(one, 'platform'));
      expect(platforms).to.deep.equal(ARCHITECTURES.map((architecture) => ({ architecture, os: 'linux' })));
    });

    for (const architecture of ARCHITECTURES) {
      const isOwn = architecture === OWN_ARCHITECTURE;
      const how = isOwn ? '' : ', under emulation';
      const version = NODE_VERSIONS[architecture] ?? '';

      describe(`of ${architecture}`, () => {
        let root: string;
        before(async () => {
          const { place, release } = there();
          root = join(place.directory, `root-${architecture}`);
          await mkdir(root);
          const name = `${release(FIRST).image}:${FIRST}`;
          await place.must(['crane', 'export', '--platform', `linux/${architecture}`, name, `${root}.tar`]);
          await place.must(['tar', '-xf', `${root}.tar`, '-C', root]);
          await rm(`${root}.tar`);
          if (!isOwn) await copyFile(emulatorOf(architecture), join(root, 'emulator'));
        });
        after(() => rm(root, { recursive: true, force: true }));

        const node = async (...args: readonly string[]): Promise<string> => {
          const command: Program = isOwn ? ['/usr/bin/node', ...args] : ['/emulator', '/usr/local/bin/node', ...args];
          return there().place.must(['chroot', '--userspec=65532:65532', root, ...command]);
        };

        it(`runs node --version${how}`, async () => expect(await node('--version')).to.equal(`v${version}\n`));

        // The npm packages of Node.js for ppc64le and s390x are older than what archaware needs, so nothing of archaware runs there.
        if (!isNewEnough(version)) return;
        it(`runs archaware --version${how}`, async () => {
          expect(await node('/app/dist/main.js', '--version')).to.equal(`${FIRST}\n`);
        });
      });
    }

    it('holds the same program on every platform', async () => {
      const { place, release } = there();
      const layers = await Promise.all(
        ARCHITECTURES.map(async (architecture) => {
          const config: unknown = JSON.parse(
            await place.must([
              'crane',
              'config',
              '--platform',
              `linux/${architecture}`,
              `${release(FIRST).image}:${FIRST}`,
            ]),
          );
          expect(textAt(config, 'architecture')).to.equal(architecture);
          return listAt(config, 'rootfs', 'diff_ids').slice(1).join();
        }),
      );
      expect(new Set(layers).size).to.equal(1);
    });
  });
}

const LEAST = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  .engines.node.replace('>=', '')
  .split('.')
  .map(Number);

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > LEAST[0] || (major === LEAST[0] && minor >= LEAST[1]);
}
