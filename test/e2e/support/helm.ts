import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { CHART } from '../../../hack/chart/files.ts';
import { binaries } from '../../../hack/cluster/spawn.ts';
import type { ManifestObject } from '../../../hack/manifests/kustomize.ts';

export const CHART_PATH = fileURLToPath(CHART);
/** The one value that the chart requires; what a test gives wins over it. */
const REQUIRED_VALUES = join(CHART_PATH, 'ci/image-values.yaml');

/** What a run of helm printed; the exit code is -1 after a signal. */
export type HelmResult = { readonly stdout: string; readonly stderr: string; readonly code: number };

/** Helm with a home of its own. */
export type Helm = {
  /**
   * Runs it to its end; `values` are its standard input (`--values -` is added, and the values that archaware's chart requires before
   * it). A failure is a result, too.
   */
  run(args: readonly string[], values?: unknown): Promise<HelmResult>;
  /** The objects that the chart makes of the values, as for Kubernetes 1.36; throws with what helm says. */
  render(values: unknown, ...args: readonly string[]): Promise<ManifestObject[]>;
  remove(): Promise<void>;
};

/** For `before`: helm is built with the cluster, so in CI its absence is a failure; else it is a reason to skip. */
export function needsHelm(context: Mocha.Context): void {
  if (existsSync(join(binaries(), 'helm'))) return;
  if (process.env.CI !== undefined) throw new Error(`helm is not in ${binaries()}: run hack/cluster/build.sh`);
  context.skip();
}

/** Arranges a home for helm; its files are gone after `remove`. `program`: `helm` is Helm 4, `helm3` is Helm 3. */
export async function arrangeHelm(kubeconfig = '/dev/null', program: 'helm' | 'helm3' = 'helm'): Promise<Helm> {
  const home = await mkdtemp(join(tmpdir(), 'archaware-helm-'));
  const environment = {
    PATH: process.env.PATH,
    HOME: home,
    KUBECONFIG: kubeconfig,
    HELM_CACHE_HOME: join(home, 'cache'),
    HELM_CONFIG_HOME: join(home, 'config'),
    HELM_DATA_HOME: join(home, 'data'),
  };

  async function run(args: readonly string[], values?: unknown): Promise<HelmResult> {
    const given = values === undefined ? [] : ['--values', REQUIRED_VALUES, '--values', '-'];
    const child = spawn(join(binaries(), program), [...args, ...given], { env: environment });
    const closed = once(child, 'close');
    child.stdin.on('error', () => undefined).end(values === undefined ? '' : JSON.stringify(values));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    return { stdout, stderr, code: child.exitCode ?? -1 };
  }

  return {
    run,
    async render(values, ...args) {
      const known = ['--kube-version', '1.36.0', '--api-versions', MUTATING_POLICIES];
      const command = ['template', 'archaware', CHART_PATH, '--namespace', 'archaware', ...known, ...args];
      const { code, stdout, stderr } = await run(command, values);
      if (code !== 0) throw new Error(stderr.trim());
      return objectsIn(stdout);
    },
    remove: () => rm(home, { recursive: true, force: true }),
  };
}

const MUTATING_POLICIES = 'admissionregistration.k8s.io/v1/MutatingAdmissionPolicy';

/** The objects of a text of YAML. */
export function objectsIn(manifest: string): ManifestObject[] {
  return parseAllDocuments(manifest)
    .map((document): unknown => {
      if (document.errors.length > 0) throw new Error(`${document.errors[0]?.message}\n${manifest}`);
      return document.toJS();
    })
    .filter(isManifestObject);
}

function isManifestObject(value: unknown): value is ManifestObject {
  return typeof value === 'object' && value !== null && 'kind' in value && 'metadata' in value;
}
