/** What stands in an executable of Linux, macOS or Windows: for whom it is, and the blob that Node.js would find in it. */
import { machCommands } from '../../hack/executables/mach-o.ts';

export type Executable = {
  readonly os: 'linux' | 'darwin' | 'windows';
  /** As its header names it: `amd64`, `arm64`, or the number. */
  readonly architecture: string;
  readonly blob: Buffer | undefined;
};

const NAME = 'NODE_SEA_BLOB';

/** Reads an executable. Throws if it is not one of 64 bits. */
export function readExecutable(file: Buffer): Executable {
  if (file.readUInt32BE(0) === 0x7f45_4c46) {
    const machines: Record<number, string> = { 62: 'amd64', 183: 'arm64' };
    return { os: 'linux', architecture: named(machines, file.readUInt16LE(18)), blob: elfNote(file) };
  }
  if (file.readUInt32LE(0) === 0xfeed_facf) {
    const machines: Record<number, string> = { 16777223: 'amd64', 16777228: 'arm64' };
    return { os: 'darwin', architecture: named(machines, file.readUInt32LE(4)), blob: machSection(file) };
  }
  const header = file.readUInt32LE(0x3c);
  if (file.toString('latin1', header, header + 4) !== 'PE\0\0') throw new Error('neither ELF nor Mach-O nor PE');
  const machines: Record<number, string> = { 34404: 'amd64', 43620: 'arm64' };
  return { os: 'windows', architecture: named(machines, file.readUInt16LE(header + 4)), blob: resource(file, header) };
}

const named = (machines: Readonly<Record<number, string>>, machine: number) => machines[machine] ?? String(machine);

/** The blob is a note: its name, then its contents, both padded to 4 bytes. */
function elfNote(file: Buffer): Buffer | undefined {
  const [table, size, count] = [Number(file.readBigUInt64LE(32)), file.readUInt16LE(54), file.readUInt16LE(56)];
  const note = 4;
  for (let at = table; at < table + size * count; at += size) {
    if (file.readUInt32LE(at) !== note) continue;
    let offset = Number(file.readBigUInt64LE(at + 8));
    const end = offset + Number(file.readBigUInt64LE(at + 32));
    while (offset < end) {
      const [nameSize, contents] = [file.readUInt32LE(offset), file.readUInt32LE(offset + 4)];
      const start = offset + 12 + padded(nameSize);
      const name = file.toString('latin1', offset + 12, offset + 12 + nameSize).replace(/\0+$/, '');
      if (name === NAME) return file.subarray(start, start + contents);
      offset = start + padded(contents);
    }
  }
  return undefined;
}

const padded = (size: number) => Math.ceil(size / 4) * 4;

function machSection(file: Buffer): Buffer | undefined {
  const segment = machCommands(file).commands.find((command) => command.segment?.name === 'NODE_SEA')?.segment;
  const section = segment?.sections.find(({ name }) => name === `__${NAME}`);
  return section && file.subarray(section.offset, section.offset + section.size);
}

/** The blob is a resource of the type RCDATA: three levels, by type, name and language. */
function resource(file: Buffer, header: number): Buffer | undefined {
  const optional = header + 24;
  const root = fileOffset(file, header, file.readUInt32LE(optional + 112 + 2 * 8));
  const rcdata = 10;
  const isDirectory = 0x8000_0000;
  const entries = (directory: number) =>
    Array.from({ length: file.readUInt16LE(directory + 12) + file.readUInt16LE(directory + 14) }, (_, index) => {
      const at = directory + 16 + index * 8;
      const [id, to] = [file.readUInt32LE(at), file.readUInt32LE(at + 4)];
      const name = id >= isDirectory ? textAt(root + (id - isDirectory)) : undefined;
      return { id, name, to: root + (to >= isDirectory ? to - isDirectory : to) };
    });
  const textAt = (at: number) => file.toString('utf16le', at + 2, at + 2 + 2 * file.readUInt16LE(at));
  const type = entries(root).find(({ id }) => id === rcdata);
  const found = type && entries(type.to).find(({ name }) => name === NAME);
  const data = found && entries(found.to)[0]?.to;
  if (data === undefined) return undefined;
  const start = fileOffset(file, header, file.readUInt32LE(data));
  return file.subarray(start, start + file.readUInt32LE(data + 4));
}

/** Where something is in the file that Windows loads at this address. */
function fileOffset(file: Buffer, header: number, address: number): number {
  const sections = header + 24 + file.readUInt16LE(header + 20);
  for (let at = sections; at < sections + 40 * file.readUInt16LE(header + 6); at += 40) {
    const [virtual, size, raw] = [file.readUInt32LE(at + 12), file.readUInt32LE(at + 16), file.readUInt32LE(at + 20)];
    if (address >= virtual && address < virtual + size) return address - virtual + raw;
  }
  throw new Error(`no section has the address ${address}`);
}
