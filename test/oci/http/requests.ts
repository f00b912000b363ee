import type { Guard } from '../../../src/oci/http/address-guard.ts';
import { createSend } from '../../../src/oci/http/registry-client.ts';
import {
  chain,
  deadline,
  followRedirects,
  type Link,
  type RegistryRequest,
  type SendRequest,
} from '../../../src/oci/http/transport.ts';
import { patientClock } from '../../support/patient-clock.ts';
import { never } from '../server.ts';

/** A request as it comes to the links. */
export function requestTo(url: string | URL, more: Partial<RegistryRequest> = {}): RegistryRequest {
  return {
    ...{ method: 'GET', url: new URL(url), headers: {}, scope: '', signal: never },
    ...{ registry: 'the-registry', policy: 'registry', maxBytes: 1000, ...more },
  };
}

/** Sends as {@link createRegistry} does, without logins, and with these links right above the connection. */
export function sendThrough(guard: Guard, ...links: Link[]): SendRequest {
  const above = [deadline(20_000, patientClock().after), followRedirects(() => undefined), ...links];
  return chain(above, createSend(guard, 'ours/1'));
}
