import type { KeySource } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import type { Clock } from '../kit/clock.ts';
import type { ConnectedClient } from '../kube/api-client.ts';
import type { Installation } from '../kube/installation.ts';
import type { LogDestination } from '../observability/log.ts';

/** What a command finds around it: the streams, the environment, the time and the signals of its process. */
export type Surroundings = {
  /** The words with which the program was called: `archaware`, or `kubectl archaware`. */
  readonly program: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Writes to standard output, which holds results and nothing else. */
  print(text: string): void;
  /** Writes a line to standard error: notes, progress and errors. */
  note(line: string): void;
  /** Replaces the last line of standard error; empty removes it. Undefined if standard error is not a terminal. */
  readonly status?: ((line: string) => void) | undefined;
  /**
   * Waits for the end of standard input and returns its text. Throws ConfigurationError if it cannot be read, and the reason of
   * `signal` if that aborts first.
   */
  readInput(): Promise<string>;
  /** Asks the user; every answer but yes counts as no. Undefined if standard input or standard error is not a terminal. */
  readonly ask: ((question: string, signal: AbortSignal) => Promise<boolean>) | undefined;
  /** The width of standard output in characters; undefined if it is not a terminal. */
  readonly columns: number | undefined;
  /** Whether results are colored (`--color`). */
  readonly colors: boolean;
  /** The words of the controller's command line, if this process was started inside the container of a running controller. */
  readonly controllerWords: readonly string[] | undefined;
  readonly log: LogDestination;
  /** Has V8 keep the heap of the whole process near what is alive, from here on. */
  keepHeapSmall(): void;
  /** Counts bytes that arrived over a watch: they are garbage, of which V8 must not keep too much. */
  received(bytes: number): void;
  readonly clock: Clock;
  /** Aborts at SIGTERM and SIGINT. It ends everything. */
  readonly signal: AbortSignal;
};

/** The clients of a cluster, whatever the configuration says. */
export type Clients = {
  readonly client: ConnectedClient;
  /** A client for the Lease only, with its own connections and login: the Lease must be renewed even if other requests wait. */
  readonly leaseClient: ConnectedClient;
  /** The namespace of the kubeconfig's context or of the service account, else `default`. */
  readonly namespace: string;
  /** The namespace of the Lease if the configuration names none. */
  readonly ownNamespace: string;
  close(): Promise<void>;
};

/** The input of a command that works on a configuration: the merged configuration and the common flags. */
export type Context = Surroundings & {
  readonly config: Config;
  readonly sources: ReadonlyMap<string, KeySource>;
  /** The file that `--config` names. `load` reads it again, with the same flags and variables. */
  readonly file: { readonly name: string; load(): Config } | undefined;
  /**
   * Where the configuration comes from: the file of `--config`, the controller in the cluster, or nothing but defaults, flags and
   * variables. `unreadable`: there may be one in the cluster, but it could not be read.
   */
  readonly origin: 'file' | 'cluster' | 'defaults' | 'unreadable';
  /** The connection over which the configuration was read from the cluster; `connect` gives it to the command. */
  readonly clients?: Clients;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  /** The installation that `--installation` names; undefined if it is not given. */
  readonly installation: Installation | undefined;
  readonly output: 'table' | 'json' | 'yaml';
};

/** The documented exit codes. */
export const EXIT = { done: 0, failed: 1, found: 2, usage: 3 } as const;
