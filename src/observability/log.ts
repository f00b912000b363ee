import { destination, type Logger, pino, stdSerializers } from 'pino';
import pretty from 'pino-pretty';

export type { Logger } from 'pino';

/** Creates the log: one line an outcome on stderr, as JSON or for eyes. Machine output has stdout to itself. */
export function createLog(options: { readonly level: string; readonly format: 'json' | 'pretty' }): Logger {
  const stream =
    options.format === 'pretty'
      ? pretty({ destination: 2, sync: true, colorize: process.stderr.isTTY === true, ignore: 'pid,hostname' })
      : destination({ fd: 2, sync: true });
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // A stack is for debugging; the message is what an operator can act on.
      serializers: {
        err: (error: unknown) =>
          options.level === 'debug' && error instanceof Error ? stdSerializers.err(error) : brief(error),
      },
    },
    stream,
  );
}

function brief(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
