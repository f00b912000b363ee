import type { AddressPolicy } from './addresses.ts';
import type { Trust } from './trust.ts';

/** Where an image may be asked for: a mirror of its registry, or the registry itself. */
export type Endpoint = {
  /** host[:port], and of a mirror its path prefix; what messages, metrics and `inspect` call it. */
  readonly name: string;
  /** host[:port] of the URL. */
  readonly host: string;
  /** What `/<repository>/manifests/…` is appended to, as `https://mirror.example.com/v2/hub`. */
  readonly base: string;
  /** The image's repository there, as `hub/library/nginx`: what a token is asked for. */
  readonly repository: string;
  /** The name that credentials are matched with, as `mirror.example.com/hub/library/nginx`. */
  readonly credentialName: string;
  readonly isSource: boolean;
  /** `?ns=docker.io`, which tells a mirror whose image is meant; empty for the source. */
  readonly query: string;
  readonly policy: AddressPolicy;
  /** Absent: verified by the built-in authorities and `registries.caFile`. */
  readonly trust?: Trust;
  /** Sent to this endpoint alone, never to where it redirects. */
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it may say what a tag stands for; else it is asked for digests only. */
  readonly resolvesTags: boolean;
};
