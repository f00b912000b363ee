import { ConfigurationError } from '../../config/problems.ts';
import { parseDuration } from '../../kit/duration.ts';
import type { Flag, Invocation } from '../command.ts';

/** The flag of every command that asks registries. */
export const LOOKUP_TIMEOUT: Flag = {
  name: 'lookup-timeout',
  value: 'DURATION',
  text: 'How long to retry lookups that fail for the moment, all together; 0s: no retry; default: 2m',
};

const DEFAULT = '2m';

/** Reads the flag, in milliseconds. Throws ConfigurationError. */
export function readLookupTimeout({ text }: Pick<Invocation, 'text'>): number {
  const given = text(LOOKUP_TIMEOUT.name) ?? DEFAULT;
  const milliseconds = parseDuration(given);
  if (milliseconds !== undefined && Number.isFinite(milliseconds)) return milliseconds;
  throw new ConfigurationError([
    `--${LOOKUP_TIMEOUT.name}: got ${JSON.stringify(given)}, expected a duration, such as 30s or 2m`,
  ]);
}
