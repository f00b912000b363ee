import type { Context } from '../../app/context.ts';
import { printable } from '../../kit/printable.ts';
import type { TagResolver } from '../../oci/resolver.ts';
import type { Progress } from '../progress.ts';
import { createPatientResolver, type Waiting } from './patient.ts';

/** Returns the resolver of a command: it tries again for `limitMs`, and shows for which registry it waits. */
export function withPatience(
  resolver: TagResolver,
  { clock }: Pick<Context, 'clock'>,
  progress: Pick<Progress, 'wait'>,
  limitMs: number,
  signal: AbortSignal,
): TagResolver {
  const onWait = (waiting: Waiting) => progress.wait(waiting.registry, waitingText(waiting));
  return createPatientResolver(resolver, { clock, limitMs, onWait, signal });
}

/** `waiting for registry.example.com (rate-limited, again in 10 s): 120 of 200 images looked up`. */
function waitingText({ registry, code, againInMs, done, total }: Waiting): string {
  const again = `again in ${Math.max(1, Math.round(againInMs / 1_000))} s`;
  return `waiting for ${printable(registry, 200)} (${code}, ${again}): ${done} of ${total} images looked up`;
}
