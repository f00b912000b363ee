import './app/wasm.ts';
import { runCommandLine } from './cli/command-line.ts';
import { processSurroundings } from './cli/process-surroundings.ts';

process.exitCode = await runCommandLine(process.argv.slice(2), processSurroundings());
