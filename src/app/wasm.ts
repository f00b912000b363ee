/**
 * Import this before anything that imports undici. Its HTTP parser is WebAssembly, which is compiled as soon as undici is
 * loaded, and V8's optimizing compiler needs 36 MiB for that alone, more than everything else at the start. The quick compiler
 * needs next to nothing, and a request takes less than a microsecond more.
 */
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--liftoff-only');
