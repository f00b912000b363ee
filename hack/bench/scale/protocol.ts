import type { Shape } from './objects.ts';

/** The first message to the server. Key and certificate: PEM. */
export type Setup = { readonly shape: Shape; readonly key: string; readonly certificate: string };

/** What the server does on command. */
export type Commands = {
  /** Sends node heartbeats and status updates of running pods, so many in a second, until the next command; 0: none. */
  load(rates: { readonly heartbeats: number; readonly updates: number }): void;
  /** Creates pods without a node, so many in a second. */
  create(pods: { readonly count: number; readonly perSecond: number }): void;
  /** Adds nodes without a taint, at once. */
  join(nodes: { readonly count: number; readonly architecture: string }): void;
  /** Counts the objects that were patched since the start. */
  patched(): { readonly pods: number; readonly nodes: number };
  /** Counts the requests by `VERB resource`. */
  requests(): Readonly<Record<string, number>>;
  forgetRequests(): void;
};

/** A message to the server; the answer has the same `id`. */
export type Command = { readonly id: number; readonly name: keyof Commands; readonly argument: unknown };
