/** The load commands of a Mach-O file of 64 bits, as macOS has them. */

export type Section = { readonly name: string; readonly offset: number; readonly size: number };

export type Segment = {
  readonly name: string;
  readonly fileOffset: number;
  readonly fileSize: number;
  readonly sections: readonly Section[];
};

export type LoadCommand = {
  readonly command: number;
  /** Where the command stands in the file. */
  readonly offset: number;
  readonly segment: Segment | undefined;
};

const HEADER_SIZE = 32;
const SEGMENT = 0x19;
const SEGMENT_SIZE = 72;
const SECTION_SIZE = 80;

/** Returns the load commands, and where they end. */
export function machCommands(file: Buffer): { readonly commands: readonly LoadCommand[]; readonly end: number } {
  if (file.readUInt32LE(0) !== 0xfeed_facf) throw new Error('it is not a Mach-O file of 64 bits');
  const commands: LoadCommand[] = [];
  let offset = HEADER_SIZE;
  for (let left = file.readUInt32LE(16); left > 0; left -= 1) {
    const command = file.readUInt32LE(offset);
    commands.push({ command, offset, segment: command === SEGMENT ? segmentAt(file, offset) : undefined });
    offset += file.readUInt32LE(offset + 4);
  }
  return { commands, end: offset };
}

function segmentAt(file: Buffer, at: number): Segment {
  const sections = Array.from({ length: file.readUInt32LE(at + 64) }, (_, index) => {
    const section = at + SEGMENT_SIZE + index * SECTION_SIZE;
    return {
      name: nameAt(file, section),
      offset: file.readUInt32LE(section + 48),
      size: Number(file.readBigUInt64LE(section + 40)),
    };
  });
  return {
    name: nameAt(file, at + 8),
    fileOffset: Number(file.readBigUInt64LE(at + 40)),
    fileSize: Number(file.readBigUInt64LE(at + 48)),
    sections,
  };
}

const nameAt = (file: Buffer, at: number): string => file.toString('latin1', at, at + 16).replace(/\0.*$/s, '');
