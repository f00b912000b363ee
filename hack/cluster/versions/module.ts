/** The Go modules that the control planes are built from: `hack/cluster/tools/kubernetes` and `kubernetes-1.36`. */

/** The programs that every control plane has. */
const CONTROL_PLANE = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].map(commandPath);

/** What the main line has in addition: the older ones use its etcd and its kubectl, and no node of theirs is built. */
const MAIN_TOOLS = [
  'go.etcd.io/etcd/server/v3',
  ...CONTROL_PLANE,
  ...['kube-proxy', 'kubectl', 'kubelet'].map(commandPath),
];

/** The least Go version of a module that has `tool` lines. */
const LEAST_GO = '1.24.0';

function commandPath(name: string): string {
  return `k8s.io/kubernetes/cmd/${name}`;
}

/** What Kubernetes' own go.mod says: its Go version, its lines `godebug`, and the modules of its folder `staging`. */
export type Upstream = {
  readonly go: string;
  readonly godebug: string | undefined;
  readonly staging: readonly string[];
};

/** Reads Kubernetes' own go.mod. Throws if it has no Go version or replaces no module by a folder of `staging`. */
export function readUpstream(goMod: string): Upstream {
  const [, go] = /^go (\S+)$/m.exec(goMod) ?? [];
  const [, godebug] = /^(godebug (?:\S+|\([^)]*\)))$/m.exec(goMod) ?? [];
  const staging = [...goMod.matchAll(/^\s*(?:replace )?(\S+) => [.]\/staging\/src\/\S+$/gm)].map(
    ([, name = '']) => name,
  );
  if (go === undefined) throw new Error("Kubernetes' go.mod names no Go version");
  if (staging.length === 0) throw new Error("Kubernetes' go.mod replaces no module by a folder of staging");
  return { go, godebug, staging };
}

/**
 * Returns the version of the staging modules: 0.37.2 for 1.37.2. Kubernetes requires them at v0.0.0; outside of its tree they are
 * published under this version.
 */
export const stagingVersion = (version: string): string => version.replace(/^1[.]/, '0.');

/**
 * Returns the go.mod for a version (`1.37.2`), before `go mod tidy`, which adds the other requirements: at the least versions that
 * Kubernetes asks for, because none of an earlier go.mod is kept.
 */
export function goModFor(folder: string, version: string, upstream: Upstream, isMain: boolean): string {
  const staged = stagingVersion(version);
  const what = isMain
    ? '// The control plane that the end-to-end tests run against, built from published modules.'
    : '// The control plane of an older Kubernetes, built from published modules; etcd and kubectl are those of tools/kubernetes.';
  const tools = [...(isMain ? MAIN_TOOLS : CONTROL_PLANE)].sort();
  return `${what}
module archaware-controller/${folder}

go ${newestGo(upstream.go)}
${upstream.godebug === undefined ? '' : `\n${upstream.godebug}\n`}
tool (
${tools.map((tool) => `\t${tool}\n`).join('')})

require k8s.io/kubernetes v${version} // indirect

// Kubernetes requires its staging modules at v0.0.0 and replaces them by folders; outside its tree they are published as v${staged}.
replace (
${upstream.staging.map((name) => `\t${name} => ${name} v${staged}\n`).join('')})
`;
}

/** The newer of Kubernetes' Go version and the least one that knows `tool` lines. */
function newestGo(go: string): string {
  const [major = 0, minor = 0] = go.split('.').map(Number);
  const [leastMajor = 0, leastMinor = 0] = LEAST_GO.split('.').map(Number);
  return major > leastMajor || (major === leastMajor && minor >= leastMinor) ? go : LEAST_GO;
}
