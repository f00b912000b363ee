import type { Platform } from '../../kit/platform.ts';

/** The bytes from the beginning of a file by which its format is read. */
export const HEAD_BYTES = 1024;
/** The kernel reads no more of the first line of a script (Linux, `BINPRM_BUF_SIZE`). */
const SCRIPT_LINE = 256;

/** A program for one CPU or machine. */
type Native = {
  readonly kind: 'elf' | 'pe' | 'mach-o' | 'wasm';
  /** A GOARCH name; absent if Go has none for it. */
  readonly architecture?: string | undefined;
  /** What people call it, for example `x86-64`. */
  readonly machine: string;
};

/** What a file is, by its first bytes. */
export type Format =
  | Native
  | { readonly kind: 'script'; readonly interpreter: string; readonly argument: string }
  | { readonly kind: 'other'; readonly machine: string };

export type ProgramVerdict = 'agrees' | 'lies' | 'unknown';
export type Judgement = { readonly verdict: ProgramVerdict; readonly reason?: string };

const EM = { sparc: 2, i386: 3, i486: 6, mips: 8, ppc: 20, ppc64: 21, s390: 22, arm: 40, sparcv9: 43, x86: 62 };
/** `e_machine/EI_CLASS/EI_DATA` of the ELF header (System V ABI, chapter 4): the GOARCH name, and what people call it. */
const ELF: ReadonlyMap<string, Native> = new Map(
  [
    [`${EM.i386}/1/1`, '386', 'i386'],
    [`${EM.i486}/1/1`, '386', 'i386'],
    [`${EM.x86}/2/1`, 'amd64', 'x86-64'],
    // GOARCH amd64p32 was for Native Client, which is not the same.
    [`${EM.x86}/1/1`, undefined, 'x32 (x86-64 with pointers of 32 bits)'],
    [`${EM.arm}/1/1`, 'arm', 'arm (32 bits)'],
    [`${EM.arm}/1/2`, 'armbe', 'arm (32 bits, big-endian)'],
    ['183/2/1', 'arm64', 'aarch64'],
    ['183/2/2', 'arm64be', 'aarch64 (big-endian)'],
    ['183/1/1', undefined, 'aarch64 with pointers of 32 bits'],
    [`${EM.ppc}/1/2`, 'ppc', 'ppc'],
    [`${EM.ppc64}/2/2`, 'ppc64', 'ppc64'],
    [`${EM.ppc64}/2/1`, 'ppc64le', 'ppc64le'],
    [`${EM.s390}/2/2`, 's390x', 's390x'],
    [`${EM.s390}/1/2`, 's390', 's390'],
    ['243/2/1', 'riscv64', 'riscv64'],
    ['243/1/1', 'riscv', 'riscv32'],
    ['258/2/1', 'loong64', 'loongarch64'],
    [`${EM.mips}/1/2`, 'mips', 'mips'],
    [`${EM.mips}/1/1`, 'mipsle', 'mips (little-endian)'],
    [`${EM.mips}/2/2`, 'mips64', 'mips64'],
    [`${EM.mips}/2/1`, 'mips64le', 'mips64 (little-endian)'],
    [`${EM.sparc}/1/2`, 'sparc', 'sparc'],
    [`${EM.sparcv9}/2/2`, 'sparc64', 'sparc64'],
  ].map(([key = '', architecture, machine = '']) => [key, { kind: 'elf', architecture, machine }]),
);

/** `Machine` of the PE header (Microsoft, "PE Format"). */
const PE: ReadonlyMap<number, string> = new Map([
  [0x14c, 'i386'],
  [0x8664, 'x86-64'],
  [0x1c0, 'arm'],
  [0x1c4, 'arm'],
  [0xaa64, 'aarch64'],
]);

const MACH_O: Format = { kind: 'mach-o', machine: 'Mach-O, a program for macOS' };
const WASM: Format = { kind: 'wasm', architecture: 'wasm', machine: 'WebAssembly' };
const EMPTY: Format = { kind: 'other', machine: 'empty' };
const OTHER: Format = { kind: 'other', machine: 'neither a program nor a script, by its first bytes' };
const PORTABLE: Format = { kind: 'other', machine: 'an "actually portable executable", which may run on several CPUs' };
/** Mach-O with 32 and 64 bits, in both orders of bytes. */
const MACH_O_MAGIC: readonly number[] = [0xfeedface, 0xfeedfacf, 0xcefaedfe, 0xcffaedfe];
const MACH_O_FAT = 0xcafebabe;
/** Java's class files begin with the same four bytes as such a program; then comes their version, at least 45. */
const MOST_FAT = 30;

/** Returns what a file is. `head`: its first {@link HEAD_BYTES} bytes, or all of them if it is shorter. */
export function formatOf(head: Buffer): Format {
  if (head.length === 0) return EMPTY;
  const magic = head.length >= 4 ? head.readUInt32BE(0) : 0;
  if (magic === 0x7f454c46) return elfOf(head);
  if (magic === 0x0061736d) return WASM;
  if (MACH_O_MAGIC.includes(magic)) return MACH_O;
  if (magic === MACH_O_FAT && head.length >= 8 && head.readUInt32BE(4) < MOST_FAT) return MACH_O;
  const start = head.toString('latin1', 0, 8);
  if (/^(MZqFpD|jartsr)='/.test(start)) return PORTABLE;
  if (start.startsWith('MZ')) return peOf(head);
  return start.startsWith('#!') ? scriptOf(head) : OTHER;
}

function elfOf(head: Buffer): Format {
  if (head.length < 20) return OTHER;
  const [width, order] = [head[4] ?? 0, head[5] ?? 0];
  if (![1, 2].includes(width) || ![1, 2].includes(order)) return OTHER;
  const machine = order === 1 ? head.readUInt16LE(18) : head.readUInt16BE(18);
  const known = ELF.get(`${machine}/${width}/${order}`);
  if (known !== undefined) return known;
  return { kind: 'elf', machine: `ELF for machine ${machine}, ${width * 32} bits, ${order === 1 ? 'LSB' : 'MSB'}` };
}

function peOf(head: Buffer): Format {
  const at = head.length >= 64 ? head.readUInt32LE(60) : head.length;
  if (at + 6 > head.length || head.toString('latin1', at, at + 4) !== 'PE\0\0') return OTHER;
  const machine = head.readUInt16LE(at + 4);
  return { kind: 'pe', machine: `a Windows program (PE, ${PE.get(machine) ?? `machine ${machine}`})` };
}

function scriptOf(head: Buffer): Format {
  const text = head.toString('utf8', 2, SCRIPT_LINE);
  const [line = ''] = text.split('\n', 1);
  const words = line.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, '');
  const [interpreter = ''] = words.split(/[ \t]/, 1);
  const argument = words.slice(interpreter.length).replace(/^[ \t]+/, '');
  return interpreter === '' ? OTHER : { kind: 'script', interpreter, argument };
}

/** Judges a program, not a script, by the platform that the image declares for it. */
export function judge({ os, architecture }: Platform, format: Exclude<Format, { kind: 'script' }>): Judgement {
  switch (format.kind) {
    case 'other':
      return { verdict: 'unknown', reason: `is ${format.machine}` };
    case 'wasm':
      if (architecture === 'wasm') return { verdict: 'agrees' };
      return { verdict: 'unknown', reason: 'is WebAssembly, which runs only with a RuntimeClass for it' };
    case 'mach-o':
      return os === 'darwin' || os === 'ios' ? { verdict: 'unknown', reason: 'is Mach-O' } : { verdict: 'lies' };
    case 'pe':
      return { verdict: 'lies' };
    case 'elf':
      return judgeElf(architecture, format);
    default:
      return format satisfies never;
  }
}

function judgeElf(declared: string, { architecture, machine }: Native): Judgement {
  if (architecture === declared) return { verdict: 'agrees' };
  if (declared === 'amd64' && architecture === '386') return { verdict: 'agrees', reason: 'nodes of amd64 run it' };
  if (declared === 'arm64' && architecture === 'arm') {
    return { verdict: 'unknown', reason: `is ${machine}, which only some CPUs of arm64 run` };
  }
  if (architecture === undefined && declared === 'amd64' && machine.startsWith('x32')) {
    return { verdict: 'unknown', reason: `is ${machine}, which few kernels run` };
  }
  return { verdict: 'lies' };
}
