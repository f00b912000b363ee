import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { expect } from 'chai';
import { annotateLayout, readLayout } from '../../../hack/release/image/layout.ts';
import { folderForEach } from '../../support/folder.ts';

const INDEX = 'application/vnd.oci.image.index.v1+json';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const digestOf = (bytes: string) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

describe('the annotations of an image layout', () => {
  const { at } = folderForEach();
  beforeEach(() => mkdir(at('blobs/sha256'), { recursive: true }));

  const keep = async (value: unknown) => {
    const bytes = JSON.stringify(value);
    const digest = digestOf(bytes);
    await writeFile(at(`blobs/${digest.replace(':', '/')}`), bytes);
    return { digest, size: bytes.length };
  };
  const blob = async (digest: string): Promise<string> => readFile(at(`blobs/${digest.replace(':', '/')}`), 'utf8');
  const writeEntries = (...manifests: readonly object[]) =>
    writeFile(at('index.json'), JSON.stringify({ schemaVersion: 2, manifests }));

  /** A layout of two platforms, as buildah writes it. Returns the digest of the index. */
  async function writeLayout(annotations = {}): Promise<string> {
    const manifests = [];
    for (const architecture of ['amd64', 's390x']) {
      const config = { mediaType: 'application/vnd.oci.image.config.v1+json', ...(await keep({ architecture })) };
      const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers: [], annotations };
      manifests.push({ mediaType: MANIFEST, ...(await keep(manifest)), platform: { architecture, os: 'linux' } });
    }
    const index = await keep({ schemaVersion: 2, mediaType: INDEX, manifests });
    await writeEntries({ mediaType: INDEX, ...index });
    return index.digest;
  }

  it('stand in the index and in the manifest of each platform, and every digest is right', async () => {
    const before = await writeLayout();
    const { digest, platforms } = await annotateLayout(at(), { title: 'x' });
    expect(digest).not.to.equal(before);
    const index = JSON.parse(await blob(digest));
    expect(index.annotations).to.deep.equal({ title: 'x' });
    expect(platforms.map(({ architecture }) => architecture)).to.deep.equal(['amd64', 's390x']);
    for (const [position, platform] of platforms.entries()) {
      const text = await blob(platform.digest);
      expect(JSON.parse(text).annotations).to.deep.equal({ title: 'x' });
      expect(digestOf(text)).to.equal(platform.digest);
      expect(index.manifests[position]).to.include({ digest: platform.digest, size: text.length });
    }
    expect(digestOf(await blob(digest))).to.equal(digest);
    expect(await readLayout(at())).to.deep.include({ digest, platforms });
  });

  it('do not replace what the builder wrote', async () => {
    await writeLayout({ title: 'of the builder' });
    const { platforms } = await annotateLayout(at(), { title: 'x' });
    const [first] = platforms;
    expect(JSON.parse(await blob(first?.digest ?? '')).annotations).to.deep.equal({ title: 'of the builder' });
  });

  it('are refused for a blob that does not have its digest', async () => {
    const digest = await writeLayout();
    await writeFile(at(`blobs/${digest.replace(':', '/')}`), '{}');
    const error = await annotateLayout(at(), {}).catch((reason: unknown) => reason);
    expect(String(error)).to.include(`has the digest ${digestOf('{}')}`);
  });

  it('are refused for a layout of several images', async () => {
    await writeLayout();
    await writeEntries({ mediaType: MANIFEST, ...(await keep({})) }, { mediaType: MANIFEST, ...(await keep({})) });
    const error = await annotateLayout(at(), {}).catch((reason: unknown) => reason);
    expect(String(error)).to.match(/index\.json: expected one entry/);
  });
});
