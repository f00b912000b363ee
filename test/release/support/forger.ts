/** Changes attestations in a registry, without a key. */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { at, listAt, textAt } from '../../../hack/cluster/json.ts';
import type { Place } from './place.ts';

/**
 * Changes the statement of the attestation of a type, and leaves its signature as it was; `undefined` takes the attestation away.
 * `list` is the tag with the list of what refers to an image (OCI distribution-spec, "Referrers Tag Schema").
 */
export async function forgeAttestation(
  place: Place,
  list: string,
  type: string,
  change: ((statement: string) => string) | undefined,
): Promise<void> {
  const folder = await mkdtemp(join(place.directory, 'layout-'));
  const layout = join(folder, 'layout');
  await place.must(['crane', 'pull', '--format=oci', list, layout]);
  const blobs = join(layout, 'blobs/sha256');
  const read = async (digest: string): Promise<unknown> =>
    JSON.parse(await readFile(join(blobs, digest.replace('sha256:', '')), 'utf8'));
  const write = async (contents: unknown) => {
    const bytes = Buffer.from(JSON.stringify(contents));
    const hash = createHash('sha256').update(bytes).digest('hex');
    await writeFile(join(blobs, hash), bytes);
    return { digest: `sha256:${hash}`, size: bytes.length };
  };
  const top: unknown = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8'));
  const index = await read(textAt(top, 'manifests', 0, 'digest'));
  let found = 0;
  const manifests: object[] = [];
  for (const entry of listAt(index, 'manifests')) {
    const manifest = await read(textAt(entry, 'digest'));
    const layer = at(manifest, 'layers', 0);
    const bundle = await read(textAt(layer, 'digest'));
    const statement = Buffer.from(textAt(bundle, 'dsseEnvelope', 'payload'), 'base64').toString();
    if (at(JSON.parse(statement), 'predicateType') !== type) {
      manifests.push(Object(entry));
      continue;
    }
    found += 1;
    if (change === undefined) continue;
    const payload = Buffer.from(change(statement)).toString('base64');
    const envelope = { ...Object(at(bundle, 'dsseEnvelope')), payload };
    const forged = { ...Object(layer), ...(await write({ ...Object(bundle), dsseEnvelope: envelope })) };
    manifests.push({ ...Object(entry), ...(await write({ ...Object(manifest), layers: [forged] })) });
  }
  if (found !== 1) throw new Error(`${list} has ${found} attestations of the type ${type}`);
  const changed = await write({ ...Object(index), manifests });
  const whole = { ...Object(top), manifests: [{ ...Object(at(top, 'manifests', 0)), ...changed }] };
  await writeFile(join(layout, 'index.json'), JSON.stringify(whole));
  await place.must(['crane', 'push', layout, list]);
  await rm(folder, { recursive: true });
  // The client adds what refers to the image to the list by itself, so the list is pushed once more.
  await place.must(['crane', 'tag', `${list.replace(/:[^:/]*$/, '')}@${changed.digest}`, list.split(':').at(-1) ?? '']);
}

/** Throws where there is nothing to replace. */
export function replaceIn(text: string, from: string, to: string): string {
  const changed = text.replace(from, to);
  if (changed === text) throw new Error(`${from} is not in ${text.slice(0, 500)}`);
  return changed;
}
