import { fieldOf, isObject, parseObject } from '../../kit/json.ts';
import { printableAscii } from '../../kit/printable.ts';
import { isDigest } from '../digest.ts';

/** A layer of an image. */
export type LayerDescriptor = {
  readonly digest: string;
  /** Why it cannot be read; absent if it can be. */
  readonly unread?: string;
};

/** More than any container runtime can stack. */
const MAX_LAYERS = 512;

/** Returns the layers of an image manifest, from the top one down; undefined if the manifest is not one. */
export function readLayers(body: Uint8Array): readonly LayerDescriptor[] | undefined {
  const manifest = parseObject(body);
  const listed = manifest === undefined ? undefined : fieldOf(manifest, 'layers');
  if (!Array.isArray(listed) || listed.length > MAX_LAYERS) return undefined;
  return listed.map(readLayer).reverse();
}

function readLayer(value: unknown): LayerDescriptor {
  const layer = isObject(value) ? value : {};
  const [digest, type, urls] = [fieldOf(layer, 'digest'), fieldOf(layer, 'mediaType'), fieldOf(layer, 'urls')];
  const name = typeof type === 'string' ? type : '';
  if (typeof digest !== 'string' || !isDigest(digest))
    return { digest: '', unread: 'has a layer without a valid digest' };
  if (/foreign|nondistributable/.test(name) || (Array.isArray(urls) && urls.length > 0)) {
    return { digest, unread: 'may be in a foreign layer, which is not in the registry and is not read' };
  }
  if (/encrypted/.test(name)) return { digest, unread: 'may be in an encrypted layer, which is not read' };
  if (name !== '' && !/tar/.test(name)) {
    return { digest, unread: `may be in a layer of type "${printableAscii(name, 100)}", which is not read` };
  }
  return { digest };
}
