import type { Request } from '../../hack/cluster/client.ts';

/** The interface of a cluster in tests: the embedded one, or the real one of hack/cluster. */
export interface TestCluster {
  readonly server: string;
  /** Path of a kubeconfig with all rights. */
  readonly kubeconfig: string;
  readonly adminToken: string;
  /** Creates or updates each document; throws when something was refused. */
  apply(yaml: string): Promise<void>;
  /** Path of a kubeconfig with the account's rights. */
  serviceAccountKubeconfig(namespace: string, name: string): Promise<string>;
  /** Sends a request as admin. A status of 400 and more is an answer, not an error. */
  readonly request: Request;
  /** Resolves when the node takes pods. */
  createNode(options: NodeOptions): Promise<void>;
  /** Repeats the condition until the answer is neither false nor undefined; throws after the time (default 30 s). */
  waitFor<T>(description: string, condition: () => Promise<T | false | undefined>, timeoutMs?: number): Promise<T>;
  stopApiServer(): Promise<void>;
  /** On the same port, with the same data. */
  startApiServer(): Promise<void>;
  stop(): Promise<void>;
}

export interface NodeOptions {
  readonly name: string;
  /** By Go's names: amd64, arm64, … */
  readonly architecture: string;
  /** Default linux. */
  readonly os?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[];
  readonly waitUntilReady?: boolean;
}
