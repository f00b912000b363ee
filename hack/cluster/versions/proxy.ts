/** What the Go module proxy knows of Kubernetes, through the go command. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import { z } from 'zod';

const run = promisify(execFile);
const KUBERNETES = 'k8s.io/kubernetes';
const TIDY_MS = 20 * 60_000;
const LOOKUP_MS = 120_000;

/** Runs go outside of any module, or in the folder of one. Throws with what go said. */
async function go(args: readonly string[], cwd = tmpdir(), timeout = LOOKUP_MS): Promise<string> {
  try {
    const env = { ...process.env, GOWORK: 'off', GOFLAGS: '' };
    const { stdout } = await run('go', args, { cwd, timeout, env, maxBuffer: 64 * 2 ** 20 });
    return stdout;
  } catch (error) {
    const said =
      error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n').slice(-5).join('\n') : '';
    throw new Error(`go ${args.join(' ')}: ${said || String(error)}`);
  }
}

const moduleSchema = z.object({ Version: z.string(), Time: z.string().optional() });

/**
 * Returns the exact version (`1.37.2`) that a version or a minor (`1.37`) stands for, and when it was made. Throws if the proxy has
 * none.
 */
export async function resolveVersion(
  version: string,
): Promise<{ readonly version: string; readonly time: string | undefined }> {
  const found = moduleSchema.parse(JSON.parse(await go(['list', '-m', '-json', `${KUBERNETES}@v${version}`])));
  return { version: found.Version.replace(/^v/, ''), time: found.Time };
}

/** Returns Kubernetes' own go.mod. */
export async function upstreamGoMod(version: string): Promise<string> {
  const text = await go(['mod', 'download', '-json', `${KUBERNETES}@v${version}`], tmpdir(), TIDY_MS);
  return readFile(z.object({ GoMod: z.string() }).parse(JSON.parse(text)).GoMod, 'utf8');
}

/** Completes the go.mod in a folder, and writes its go.sum. */
export async function tidy(folder: string): Promise<void> {
  await go(['mod', 'tidy'], folder, TIDY_MS);
}
