/** The entry point of the single executables: as src/main.ts, without the top-level await, which CommonJS does not have. */
import '../../src/app/wasm.ts';
import { runCommandLine } from '../../src/cli/command-line.ts';
import { processSurroundings } from '../../src/cli/process-surroundings.ts';

void runCommandLine(process.argv.slice(2), processSurroundings()).then((code) => {
  process.exitCode = code;
});
