/**
 * Import this before anything that imports undici. Its HTTP parser is WebAssembly, which is compiled as soon as undici is
 * loaded, and V8's optimizing compiler needs 36 MiB for that alone, more than everything else at the start. The quick compiler
 * needs next to nothing, and a request takes less than a microsecond more.
 */
import { setFlagsFromString } from 'node:v8';

/**
 * V8 cannot go on if its quick compiler does not know an instruction and must not use the other one. On these architectures it knows all.
 */
const COMPLETE: readonly string[] = ['x64', 'arm64'];

if (COMPLETE.includes(process.arch)) {
  setFlagsFromString('--liftoff-only');
  // Node.js 24 needs these two as well: at run time, the first flag no longer implies them.
  setFlagsFromString('--no-wasm-tier-up');
  setFlagsFromString('--no-wasm-dynamic-tiering');
}
