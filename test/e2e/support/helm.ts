import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { CHART } from '../../../hack/chart/files.ts';
import { binaries } from '../../../hack/cluster/spawn.ts';
import type { ManifestObject } from '../../../hack/manifests/kustomize.ts';
import { attempt } from '../../../hack/programs.ts';
import type { Finished } from '../../support/controller-process.ts';
import { needsBinaries } from './programs.ts';

export const CHART_PATH = fileURLToPath(CHART);
/** The one value that the chart requires; what a test gives wins over it. */
const REQUIRED_VALUES = join(CHART_PATH, 'ci/image-values.yaml');

/** The release as the documents call it. */
export const RELEASE = ['archaware', '--namespace', 'archaware'] as const;

/** Helm with a home of its own. */
export type Helm = {
  /**
   * Runs it to its end; `values` are its standard input (`--values -` is added, and the values that archaware's chart requires before
   * it). A failure is a result, too.
   */
  run(args: readonly string[], values?: unknown): Promise<Finished>;
  /** The same; throws with what it printed unless the exit code is 0. Returns its standard output. */
  must(args: readonly string[], values?: unknown): Promise<string>;
  /** The objects that the chart makes of the values, as for Kubernetes 1.36; throws with what helm says. */
  render(values: unknown, ...args: readonly string[]): Promise<ManifestObject[]>;
  remove(): Promise<void>;
};

export const needsHelm = (context: Mocha.Context): void => needsBinaries(context, 'hack/cluster/build.sh', ['helm']);

/** Arranges a home for helm; its files are gone after `remove`. `program`: `helm` is Helm 4, `helm3` is Helm 3. */
export async function arrangeHelm(kubeconfig = '/dev/null', program: 'helm' | 'helm3' = 'helm'): Promise<Helm> {
  const home = await mkdtemp(join(tmpdir(), 'archaware-helm-'));
  const env = {
    HOME: home,
    KUBECONFIG: kubeconfig,
    HELM_CACHE_HOME: join(home, 'cache'),
    HELM_CONFIG_HOME: join(home, 'config'),
    HELM_DATA_HOME: join(home, 'data'),
  };

  const run: Helm['run'] = (args, values) => {
    const given = values === undefined ? [] : ['--values', REQUIRED_VALUES, '--values', '-'];
    const input = values === undefined ? '' : JSON.stringify(values);
    return attempt(join(binaries(), program), [...args, ...given], { env, input });
  };
  const must: Helm['must'] = async (args, values) => {
    const { code, stdout, stderr } = await run(args, values);
    if (code !== 0) throw new Error(`helm ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
    return stdout;
  };

  return {
    run,
    must,
    async render(values, ...args) {
      const known = ['--kube-version', '1.36.0', '--api-versions', MUTATING_POLICIES];
      return objectsIn(await must(['template', ...RELEASE, CHART_PATH, ...known, ...args], values));
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
