import { destination, type Logger, pino, stdSerializers } from 'pino';
import { messageOf } from '../kit/errors.ts';
import { escaped } from '../kit/printable.ts';

export type { Logger } from 'pino';

/** Where the log goes: a file, standard error for example, or a function that takes each line as JSON. */
export type LogDestination = { readonly fd: number; readonly hasColors: boolean } | { write(line: string): void };

/** A batch of lines is written when it has this many bytes, and after this long at the latest. */
const BATCH_BYTES = 12_288;
const BATCH_MS = 100;

/** Creates the log: one line for each outcome, as JSON or in colours for a terminal. The `level` may be changed at any time. */
export async function createLog(
  options: { readonly level: string; readonly format: 'json' | 'pretty' },
  to: LogDestination,
): Promise<Logger> {
  const stream =
    'write' in to
      ? to
      : options.format === 'pretty'
        ? (await import('pino-pretty')).default({
            destination: to.fd,
            sync: true,
            colorize: to.hasColors,
            ignore: 'pid,hostname',
          })
        : // One system call for each of 2,000 pods would cost more than their patches.
          destination({ fd: to.fd, sync: true, minLength: BATCH_BYTES, periodicFlush: BATCH_MS });
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // JSON leaves characters that turn the direction of a text, and that some terminals obey. What becomes pretty is read as JSON first.
      hooks: { streamWrite: (line) => escaped(line, options.format === 'pretty' ? '\\\\' : '\\') },
      // The stack is for debugging; the message is what an operator can act on.
      serializers: {
        err: (error: unknown) =>
          log.level === 'debug' && error instanceof Error ? stdSerializers.err(error) : messageOf(error),
      },
    },
    stream,
  );
  return log;
}
