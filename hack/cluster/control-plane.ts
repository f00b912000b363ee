import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { createAuthority, generateKey, privatePem } from './certificates.ts';
import { writeKubeconfig } from './kubeconfig.ts';

/**
 * The users of the token file. The names are those of a real cluster, because policies and audit logs distinguish them.
 * All are masters, because the tests are not about the rights of the components.
 */
const users = ['admin', 'system:kube-scheduler', 'system:kube-controller-manager', 'kwok'] as const;
/** The users of a real node have its rights, and no others. */
const nodeUsers = ['kubelet', 'kube-proxy'] as const;
type User = (typeof users)[number] | (typeof nodeUsers)[number];

/** The things that the components share: files in `directory`, and the addresses. */
export interface Plan {
  readonly directory: string;
  readonly server: string;
  readonly etcd: string;
  readonly etcdPeer: string;
  readonly authority: string;
  readonly adminToken: string;
  readonly featureGates: Readonly<Record<string, boolean>>;
  readonly apiServerArgs: readonly string[];
  /** Namespaces whose service accounts' requests are recorded. */
  readonly auditNamespaces: readonly string[];
  /** The real node beside which the components run. */
  readonly node?: { readonly name: string; readonly address: string };
  kubeconfig(user: User): string;
}

export type PlanOptions = Pick<Plan, 'directory' | 'featureGates' | 'apiServerArgs' | 'auditNamespaces' | 'node'> & {
  readonly ports: { readonly apiServer: number; readonly etcd: number; readonly etcdPeer: number };
};

/** Writes the certificates, keys, tokens and kubeconfigs into the directory. */
export async function prepare({ ports, ...options }: PlanOptions): Promise<Plan> {
  const file = (name: string) => join(options.directory, name);
  const server = `https://127.0.0.1:${ports.apiServer}`;
  const authority = createAuthority('archaware test authority');
  const serving = authority.issue('kube-apiserver', ['127.0.0.1', 'localhost', 'kubernetes.default.svc', '10.96.0.1']);
  const accounts = generateKey();
  const kubelet = authority.issueClient(kubeletClient);
  const known = [...users, ...(options.node ? nodeUsers : [])];
  const tokens = known.map((user) => ({ user, token: randomBytes(16).toString('hex') }));
  const kubeconfig = (user: User) => file(`${user.replace('system:', '')}.kubeconfig`);
  await Promise.all([
    writeFile(file('ca.crt'), authority.certificate),
    writeFile(file('serving.crt'), serving.certificate),
    writeFile(file('serving.key'), serving.key, { mode: 0o600 }),
    writeFile(file('accounts.pub'), accounts.publicKey.export({ type: 'spki', format: 'pem' })),
    writeFile(file('accounts.key'), privatePem(accounts.privateKey), { mode: 0o600 }),
    writeFile(file('kubelet-client.crt'), kubelet.certificate),
    writeFile(file('kubelet-client.key'), kubelet.key, { mode: 0o600 }),
    writeFile(file('tokens.csv'), tokens.map((token) => tokenLine(token, options.node?.name)).join(''), {
      mode: 0o600,
    }),
    writeFile(file('audit.yaml'), stringify(auditPolicy(options.auditNamespaces))),
    ...tokens.map(({ user, token }) =>
      writeKubeconfig(kubeconfig(user), { server, authority: authority.certificate, token, user }),
    ),
  ]);
  return {
    ...options,
    server,
    etcd: `http://127.0.0.1:${ports.etcd}`,
    etcdPeer: `http://127.0.0.1:${ports.etcdPeer}`,
    authority: authority.certificate,
    adminToken: tokens.find(({ user }) => user === 'admin')?.token ?? '',
    kubeconfig,
  };
}

/** The name with which the API server authenticates to the kubelet; a binding gives it its rights. */
export const kubeletClient = 'kube-apiserver-kubelet-client';

function tokenLine({ user, token }: { user: User; token: string }, node = ''): string {
  if (user === 'kubelet') return `${token},system:node:${node},${user},system:nodes\n`;
  if (user === 'kube-proxy') return `${token},system:kube-proxy,${user}\n`;
  return `${token},${user},${user},system:masters\n`;
}

function auditPolicy(namespaces: readonly string[]) {
  const groups = namespaces.map((namespace) => `system:serviceaccounts:${namespace}`);
  const rules = [...(groups.length > 0 ? [{ level: 'Metadata', userGroups: groups }] : []), { level: 'None' }];
  return { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules };
}

const gates = ({ featureGates }: Plan) =>
  Object.entries(featureGates).map(([name, on]) => `--feature-gates=${name}=${on}`);

export const etcdArgs = ({ directory, etcd, etcdPeer }: Plan): string[] => [
  `--data-dir=${join(directory, 'etcd')}`,
  `--listen-client-urls=${etcd}`,
  `--advertise-client-urls=${etcd}`,
  `--listen-peer-urls=${etcdPeer}`,
  `--initial-advertise-peer-urls=${etcdPeer}`,
  `--initial-cluster=default=${etcdPeer}`,
  '--unsafe-no-fsync',
  '--log-level=warn',
];

export const apiServerArgs = (plan: Plan): string[] => [
  ...(plan.node ? besideNodeArgs(plan.directory, plan.node.address) : loopbackArgs),
  `--secure-port=${new URL(plan.server).port}`,
  `--etcd-servers=${plan.etcd}`,
  `--tls-cert-file=${join(plan.directory, 'serving.crt')}`,
  `--tls-private-key-file=${join(plan.directory, 'serving.key')}`,
  `--token-auth-file=${join(plan.directory, 'tokens.csv')}`,
  '--authorization-mode=Node,RBAC',
  '--service-account-issuer=https://kubernetes.default.svc',
  `--service-account-key-file=${join(plan.directory, 'accounts.pub')}`,
  `--service-account-signing-key-file=${join(plan.directory, 'accounts.key')}`,
  '--service-cluster-ip-range=10.96.0.0/16',
  '--allow-privileged=true',
  '--enable-admission-plugins=NodeRestriction',
  ...(plan.auditNamespaces.length > 0 ? auditArgs(plan) : []),
  ...gates(plan),
  ...plan.apiServerArgs,
];

// The API server would try, and fail, to publish a loopback address as an endpoint of the `kubernetes` Service, over
// and over.
const loopbackArgs = ['--bind-address=127.0.0.1', '--endpoint-reconciler-type=none'];

/** Pods reach the API server by the `kubernetes` Service, and it reaches the kubelet. */
const besideNodeArgs = (directory: string, address: string) => [
  '--bind-address=0.0.0.0',
  `--advertise-address=${address}`,
  `--client-ca-file=${join(directory, 'ca.crt')}`,
  `--kubelet-client-certificate=${join(directory, 'kubelet-client.crt')}`,
  `--kubelet-client-key=${join(directory, 'kubelet-client.key')}`,
  '--kubelet-preferred-address-types=InternalIP',
];

const auditArgs = ({ directory }: Plan) => [
  `--audit-policy-file=${join(directory, 'audit.yaml')}`,
  `--audit-log-path=${join(directory, 'audit.log')}`,
];

// Without election they start at once. With the default limits, a benchmark would measure them and not the controller.
const controllerArgs = (plan: Plan, user: User) => [
  `--kubeconfig=${plan.kubeconfig(user)}`,
  '--leader-elect=false',
  '--kube-api-qps=500',
  '--kube-api-burst=1000',
  // No test reads their metrics or health.
  '--secure-port=0',
  ...gates(plan),
];

export const schedulerArgs = (plan: Plan): string[] => controllerArgs(plan, 'system:kube-scheduler');

export const controllerManagerArgs = (plan: Plan): string[] => [
  ...controllerArgs(plan, 'system:kube-controller-manager'),
  // As with kubeadm: policies see the DaemonSet controller as its own service account.
  '--use-service-account-credentials=true',
  `--service-account-private-key-file=${join(plan.directory, 'accounts.key')}`,
  `--root-ca-file=${join(plan.directory, 'ca.crt')}`,
];
