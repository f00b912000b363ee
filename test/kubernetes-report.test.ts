import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { needsPosix } from './support/platforms.ts';

const SCRIPT = fileURLToPath(new URL('../hack/cluster/report-kubernetes.sh', import.meta.url));
const RUN = 'https://source.invalid/actions/runs/1';

/** A gh that writes its arguments down, and finds the issues of ISSUES. */
const GH = `#!/bin/sh
printf '%s\\n' "$@" >> "$CALLS"
if [ "$2" = list ] && [ -n "$ISSUES" ]; then printf '%s\\n' "$ISSUES"; fi
`;

describe('hack/cluster/report-kubernetes.sh', () => {
  let directory = '';
  before(async function () {
    needsPosix(this, 'bash');
    directory = await mkdtemp(join(tmpdir(), 'archaware-report-'));
    await writeFile(join(directory, 'gh'), GH);
    await chmod(join(directory, 'gh'), 0o755);
  });
  after(() => rm(directory, { recursive: true, force: true }));

  /** Runs the script, and returns its exit code, and what gh was asked for. `issues`: what gh finds. */
  async function report(args: readonly string[], issues = ''): Promise<{ code: number; calls: string[] }> {
    const calls = join(directory, 'calls');
    await writeFile(calls, '');
    const PATH = [directory, process.env.PATH].join(delimiter);
    const code = await new Promise<number>((resolve) => {
      const env = { ...process.env, PATH, CALLS: calls, ISSUES: issues };
      execFile('bash', [SCRIPT, ...args], { env }, (error) => resolve(error === null ? 0 : Number(error.code)));
    });
    return { code, calls: (await readFile(calls, 'utf8')).split('\n').filter((line) => line !== '') };
  }

  it('opens an issue with the version as its title', async () => {
    const { code, calls } = await report(['1.38.0', 'success', RUN]);
    expect(code).to.equal(0);
    expect(calls.slice(calls.indexOf('create'))).to.include.members(['--title', 'Kubernetes 1.38.0', '--body']);
    expect(calls.join(' ')).to.include(`The tests pass on Kubernetes 1.38.0: ${RUN}`);
  });

  it('says which command shows a failure', async () => {
    const { calls } = await report(['1.38.0-rc.1', 'failure', RUN]);
    expect(calls.join(' ')).to.include('hack/cluster/try-kubernetes.sh 1.38.0-rc.1');
  });

  it('continues an open issue, and leaves a closed one alone', async () => {
    const open = await report(['1.38.0', 'success', RUN], 'OPEN 7');
    expect(open.calls).to.include.members(['comment', '7']).and.not.include('create');
    const closed = await report(['1.38.0', 'success', RUN], 'CLOSED 7');
    expect(closed.code).to.equal(0);
    expect(closed.calls).not.to.include.members(['comment']).and.not.include('create');
  });

  for (const args of [
    [],
    ['1.38.0', 'success'],
    ['1.38.0', 'skipped', RUN],
    ['$(id)', 'success', RUN],
    ['1.38.0', 'success', 'file:///etc'],
  ]) {
    it(`refuses ${args.join(' ') || 'no arguments'}, and asks gh for nothing`, async () => {
      expect(await report(args)).to.deep.equal({ code: 3, calls: [] });
    });
  }
});
