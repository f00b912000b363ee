import { ConfigurationError } from '../config/problems.ts';

/** Throws ConfigurationError if a command that takes no operands got some. */
export function withoutOperands(command: string, operands: readonly string[]): void {
  if (operands.length > 0)
    throw new ConfigurationError([`${command}: unexpected ${JSON.stringify(operands.join(' '))}`]);
}
