/** What the pictures say that the sources decide: names on objects, and defaults of the configuration. */
import { allKeys } from '../../src/config/keys.ts';
import { ARCHITECTURE_GATE, ARCHITECTURE_LABEL, type EventReason } from '../../src/names.ts';

/** The default of a key, as text. Throws for a key that does not exist. */
function fallback(path: string): string {
  const key = allKeys().find((one) => one.path === path);
  if (key === undefined) throw new Error(`there is no key ${path}`);
  return String(key.fallback);
}

/** A key's name, checked. */
export function key(path: string): string {
  fallback(path);
  return path;
}

/** The reason of an Event, checked by its type. */
export const event = (reason: EventReason): string => `Event ${reason}`;

export const GATE = ARCHITECTURE_GATE;
export const LABEL = ARCHITECTURE_LABEL;
export const FALLBACK_AFTER = fallback('images.fallbackAfter');
export const TAINT_KEY = fallback('taints.key');
/** `supported-arch=arm64:NoSchedule`. */
export const taint = (architecture: string): string => `${TAINT_KEY}=${architecture}:${fallback('taints.effect')}`;
