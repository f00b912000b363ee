/** Layers with files, links and directories, and programs that are nothing but a header: the same bytes on every machine. */
import {
  type Content,
  content,
  type Descriptor,
  descriptorOf,
  type FixturePlatform,
  gzipStored,
  type ImageFixture,
  json,
  MEDIA_TYPES,
} from './build.ts';

/** An entry of a layer. `type`: the type flag of tar; default: a file, or a symbolic link if it has a target. */
export type LayerEntry = {
  readonly name: string;
  readonly type?: string;
  readonly bytes?: Buffer;
  readonly target?: string;
  /** In octal digits; default: 755. */
  readonly mode?: string;
  /** Written into the header instead of the length of the bytes. */
  readonly size?: number;
  /** Extended headers (pax), in front of the entry. */
  readonly pax?: Readonly<Record<string, string>>;
};

const BLOCK = 512;

/** A ustar archive. Names that are too long for it get an extended header. */
export function archive(entries: readonly LayerEntry[], { isOpen = false } = {}): Buffer {
  const blocks = entries.flatMap((entry) => {
    const { name, target = '', pax = {} } = entry;
    const extended = {
      ...(Buffer.byteLength(name) > 100 ? { path: name } : {}),
      ...(Buffer.byteLength(target) > 100 ? { linkpath: target } : {}),
      ...pax,
    };
    const records = Buffer.from(
      Object.entries(extended)
        .map(([key, value]) => record(key, value))
        .join(''),
    );
    return [
      ...(records.length > 0 ? member({ name: 'PaxHeaders/0', type: 'x', bytes: records }) : []),
      ...member(entry),
    ];
  });
  return Buffer.concat([...blocks, ...(isOpen ? [] : [Buffer.alloc(2 * BLOCK)])]);
}

function member({
  name,
  target = '',
  type,
  mode = '755',
  bytes = Buffer.alloc(0),
  size = bytes.length,
}: LayerEntry): Buffer[] {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(name, 0, 100);
  header.write(`${mode.padStart(7, '0')}\0`, 100);
  header.write('0000000\u00000000000\0', 108);
  header.write(octal(size, 11), 124);
  header.write('00000000000\0', 136);
  header.write(' '.repeat(8), 148); // the checksum counts its own field as spaces
  header.write(type ?? (target === '' ? '0' : '2'), 156);
  header.write(target, 157, 100);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return [header, bytes, Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)];
}

/** One record of an extended header: its length in decimal digits counts itself. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest);
  while (String(length).length + Buffer.byteLength(rest) !== length)
    length = String(length).length + Buffer.byteLength(rest);
  return `${length}${rest}`;
}

/** `e_machine`, and whether it has 64 bits and stores the highest byte first. */
const ELF = {
  '386': [3, 1, 1],
  amd64: [62, 2, 1],
  arm: [40, 1, 1],
  arm64: [183, 2, 1],
  ppc64le: [21, 2, 1],
  riscv64: [243, 2, 1],
  s390x: [22, 2, 2],
} as const;

/** The header of a program for Linux, without anything that could run. */
export function elf(architecture: keyof typeof ELF, bytes = 64): Buffer {
  const [machine, width, order] = ELF[architecture];
  const header = Buffer.alloc(Math.max(bytes, 64));
  header.set([0x7f, 0x45, 0x4c, 0x46, width, order, 1]);
  const write = (value: number, at: number): number =>
    order === 1 ? header.writeUInt16LE(value, at) : header.writeUInt16BE(value, at);
  write(2, 16);
  write(machine, 18);
  return header;
}

/** The header of a program for Windows. */
export function pe(architecture: 'amd64' | 'arm64' | '386'): Buffer {
  const bytes = Buffer.alloc(256);
  bytes.write('MZ', 0);
  bytes.writeUInt32LE(128, 60);
  bytes.write('PE\0\0', 128);
  bytes.writeUInt16LE({ amd64: 0x8664, arm64: 0xaa64, '386': 0x14c }[architecture], 132);
  return bytes;
}

/** A layer as it is stored; a buffer is taken as it is. */
export type LayerSource = readonly LayerEntry[] | Buffer | Content;

/** What a container of the image starts (OCI image-spec, config.md). */
export type Start = {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly WorkingDir?: string;
};

/** A single-platform image of these layers, the bottom one first. `stated`: what its config says of its platform. */
export function layeredImage(
  stated: FixturePlatform,
  layers: readonly LayerSource[],
  config: Start,
  more: Readonly<Record<string, unknown>> = {},
): ImageFixture {
  const stored = layers.map((layer): Content => {
    if (Buffer.isBuffer(layer)) return content(MEDIA_TYPES.ociLayer, layer);
    return 'digest' in layer ? layer : content(MEDIA_TYPES.ociLayer, gzipStored(archive(layer)));
  });
  const blob = json(MEDIA_TYPES.ociConfig, { ...stated, config, rootfs: { type: 'layers', diff_ids: [] } });
  const descriptors: Descriptor[] = stored.map((each) => descriptorOf(each));
  const root = json(MEDIA_TYPES.ociManifest, {
    schemaVersion: 2,
    mediaType: MEDIA_TYPES.ociManifest,
    config: descriptorOf(blob),
    layers: descriptors,
    ...more,
  });
  const blobs = new Map([blob, ...stored].map((each) => [each.digest, each]));
  return { root, manifests: [root], blobs: [...blobs.values()] };
}
