import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';
import { addAbortSignal } from 'node:stream';
import { isatty } from 'node:tty';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { EXIT, type Surroundings } from '../app/surroundings.ts';
import { ConfigurationError } from '../config/shown-problems.ts';
import { systemClock } from '../kit/clock.ts';
import { codeOf, messageOf } from '../kit/errors.ts';
import { controllerWords } from './deployed.ts';
import { programOf } from './program.ts';

const STANDARD_INPUT = 0;
const STANDARD_ERROR = 2;
const USUAL_COLUMNS = 80;

/** Returns the surroundings of this process. From here on, SIGTERM and SIGINT abort the signal, and the second one ends the process. */
export function processSurroundings(): Surroundings {
  const heap = createHeap();
  const { env, pid, stdout, stderr } = process;
  const signal = untilSignalled();
  // Who reads may end first, as `head` does. What is under way goes on, and the exit code says that output is missing.
  stderr.on('error', () => undefined);
  stdout.on('error', (error) => {
    if (codeOf(error) !== 'EPIPE') stderr.write(`standard output cannot be written (${codeOf(error)})\n`);
    process.once('exit', () => process.exit(EXIT.failed));
  });
  return {
    program: programOf(process.argv0),
    environment: env,
    print: (text) => void stdout.write(text),
    note: (line) => void stderr.write(`${line}\n`),
    readInput: () => readInput(signal),
    status:
      stderr.isTTY === true ? (line) => void stderr.write(`\r\x1b[2K${line.slice(0, stderr.columns)}`) : undefined,
    ask: isatty(STANDARD_INPUT) && stderr.isTTY === true ? ask : undefined,
    // A terminal may not know its width, and says 0 then.
    columns: stdout.isTTY === true ? stdout.columns || USUAL_COLUMNS : undefined,
    colors: false,
    controllerWords: controllerWords({ environment: env, firstProcess: firstProcess(), pid }),
    log: { fd: STANDARD_ERROR, hasColors: stderr.isTTY === true },
    keepHeapSmall: heap.keepSmall,
    received: heap.received,
    clock: systemClock,
    signal,
  };
}

/**
 * Waits for the end of standard input: a pipe whose producer is slower than this program, a file, or a terminal until Ctrl-D. Where
 * it is closed, the text is empty. A synchronous read fails with EAGAIN on a pipe or a terminal that does not block, as `process.stdin`
 * and other programs make it, and Ctrl-C could not end it.
 */
async function readInput(signal: AbortSignal): Promise<string> {
  const { stdin } = process;
  const chunks: Buffer[] = [];
  try {
    addAbortSignal(signal, stdin);
    for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  } catch (error) {
    signal.throwIfAborted();
    throw new ConfigurationError([`standard input cannot be read (${codeOf(error) || messageOf(error)})`]);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Returns the words with which the first process of this container was started; none where there is no /proc. */
function firstProcess(): string[] {
  try {
    return readFileSync('/proc/1/cmdline', 'utf8').split('\0').slice(0, -1);
  } catch {
    return [];
  }
}

/** Asks the user. Everything but yes counts as no, also Ctrl-C, the end of the input and an aborted signal. */
async function ask(question: string, signal: AbortSignal): Promise<boolean> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      prompt.once('close', () => resolve(''));
      prompt.question(`${question} [y/N] `, { signal }).then(resolve, () => resolve(''));
    });
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    prompt.close();
  }
}

/** Aborts at the first SIGTERM or SIGINT; the second ends the process at once. */
function untilSignalled(): AbortSignal {
  const controller = new AbortController();
  for (const [name, number] of [
    ['SIGTERM', 15],
    ['SIGINT', 2],
  ] as const) {
    process.on(name, () => {
      if (controller.signal.aborted) process.exit(128 + number);
      controller.abort();
    });
  }
  return controller.signal;
}

/** Fewer than the fifth of a small heap (30 MB) by which V8 lets it grow. */
const MOST_RECEIVED = 4 * 1024 * 1024;

/** Returns the heap of this process. Until `keepSmall` is called, it is as V8 keeps it. */
export function createHeap() {
  let collect: unknown;
  let received = 0;
  return {
    /**
     * Keeps the heap near what is alive, and collects now. V8 lets a young process grow to several times that before it collects: after
     * a burst of 2,000 pods it held 165 MB for 35 MB of live objects (docs/decisions/006-small-heap.md). The flags are read at every
     * collection. Call it at the start, because the space of young objects never gets smaller again, and whenever much has become garbage.
     */
    keepSmall(): void {
      setFlagsFromString('--semi-space-growth-factor=1');
      setFlagsFromString('--heap-growing-percent=20');
      // Young garbage is little at a time. Threads that help with it cost more than they save, most of all under a CPU limit.
      setFlagsFromString('--no-parallel-scavenge');
      setFlagsFromString('--expose-gc');
      collect ??= runInNewContext('globalThis.gc');
      if (typeof collect !== 'function') return;
      // V8 then also moves objects together from pages that are a fifth empty. By default, a page must be nearly empty for that.
      setFlagsFromString('--optimize-for-size');
      collect();
      setFlagsFromString('--no-optimize-for-size');
    },
    /**
     * Counts bytes that arrived over a watch, and collects young garbage once in a while. V8 counts the buffers of received bytes
     * with the old objects until they are collected, although they are garbage at once. When little else is allocated, young garbage
     * is collected so seldom that these buffers cause one full collection after the other, each of which reads the whole heap.
     */
    received(bytes: number): void {
      received += bytes;
      if (received < MOST_RECEIVED) return;
      received = 0;
      if (typeof collect === 'function') collect({ type: 'minor' });
    },
  };
}
