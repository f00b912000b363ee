/** For which architecture a program of Linux is, as images name it, by its ELF header (elf(5): EI_CLASS, EI_DATA, e_machine). */
export function architectureOf(program: Buffer): string {
  if (program.length < 20 || program.readUInt32BE(0) !== 0x7f45_4c46) return 'not an ELF file';
  const bits = program[4] === 2 ? 64 : 32;
  const isLittle = program[5] === 1;
  const machine = isLittle ? program.readUInt16LE(18) : program.readUInt16BE(18);
  const key = `${machine} ${bits} ${isLittle ? 'little' : 'big'}`;
  return MACHINES[key] ?? key;
}

const MACHINES: Readonly<Record<string, string>> = {
  '62 64 little': 'amd64',
  '183 64 little': 'arm64',
  '21 64 little': 'ppc64le',
  '22 64 big': 's390x',
};
