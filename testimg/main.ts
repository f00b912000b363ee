/** `update.sh` in TypeScript: pushes every fixture to Docker Hub and Quay, or to the hosts that the environment names. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { readCredentials } from './credentials.ts';
import { FIXTURES, TESTIMG_REPOSITORY } from './fixtures.ts';
import { type PushResult, pushFixtures } from './push.ts';

/** host[:port] of a loopback address: such registries are local ones, without TLS. */
function isLoopback(registry: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])(:\d+)?$/.test(registry);
}

async function update(registry: string, namespace: string, authfile: string | undefined): Promise<PushResult> {
  const repository = `${namespace}/${TESTIMG_REPOSITORY}`;
  const credentials = authfile === undefined ? undefined : await readCredentials(authfile, `${registry}/${repository}`);
  return pushFixtures({
    registry,
    repository,
    insecure: isLoopback(registry),
    ...(credentials && { credentials }),
    onTag: ({ tag, reason }) => {
      console.log(`${registry}/${repository}:${tag} ${reason === undefined ? 'pushed' : `skipped: ${reason}`}`);
    },
  });
}

function printTable(columns: readonly { registry: string; result: PushResult }[]): void {
  const rows = [
    ['TAG', ...columns.map(({ registry }) => registry), 'DESCRIPTION'],
    ...FIXTURES.map(({ tag, description }) => [
      tag,
      ...columns.map(({ result }) => (result.pushed.includes(tag) ? 'pushed' : 'skipped')),
      description,
    ]),
  ];
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  console.log();
  for (const row of rows)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

async function main(): Promise<void> {
  const [dockerNamespace, quayNamespace, given] = process.argv.slice(2);
  if (!dockerNamespace || !quayNamespace) throw new Error('call testimg/update.sh, which says what it needs');
  const standard = join(homedir(), '.docker', 'config.json');
  const authfile = given ?? (existsSync(standard) ? standard : undefined);
  const targets = [
    { registry: process.env.DOCKER_REGISTRY || 'docker.io', namespace: dockerNamespace },
    { registry: process.env.QUAY_REGISTRY || 'quay.io', namespace: quayNamespace },
  ];
  const columns = [];
  for (const { registry, namespace } of targets) {
    columns.push({ registry, result: await update(registry, namespace, authfile) });
  }
  printTable(columns);
}

try {
  await main();
} catch (error) {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
  console.error(`update.sh: ${error instanceof Error ? error.message : String(error)}${cause}`);
  process.exitCode = 1;
}
