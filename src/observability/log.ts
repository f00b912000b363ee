import { destination, type Logger, pino, stdSerializers } from 'pino';
import { messageOf } from '../kit/errors.ts';

export type { Logger } from 'pino';

/** Lines are written at once when there are many, and after this long at the latest. */
const BATCH_BYTES = 12_288;
const BATCH_MS = 100;

/**
 * Creates the log: one line an outcome on stderr, as JSON or for eyes. Machine output has stdout to itself. Its `level` may be
 * set at any time.
 */
export async function createLog(options: {
  readonly level: string;
  readonly format: 'json' | 'pretty';
}): Promise<Logger> {
  const stream =
    options.format === 'pretty'
      ? (await import('pino-pretty')).default({
          destination: 2,
          sync: true,
          colorize: process.stderr.isTTY === true,
          ignore: 'pid,hostname',
        })
      : // A write for each of 2,000 pods would cost more than their patches.
        destination({ fd: 2, sync: true, minLength: BATCH_BYTES, periodicFlush: BATCH_MS });
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // A stack is for debugging; the message is what an operator can act on.
      serializers: {
        err: (error: unknown) =>
          log.level === 'debug' && error instanceof Error ? stdSerializers.err(error) : messageOf(error),
      },
    },
    stream,
  );
  return log;
}
