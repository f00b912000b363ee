import { createInterface } from 'node:readline/promises';

/** Whether the user can be asked: stdin and stderr are terminals. */
export function isTerminal(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks the user. Everything but yes counts as no, also Ctrl-C, the end of the input and an aborted signal. */
export async function ask(question: string, signal: AbortSignal): Promise<boolean> {
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
