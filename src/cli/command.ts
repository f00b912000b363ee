import type { Context, Surroundings } from '../app/surroundings.ts';
import type { ClusterReading } from './command-context.ts';

/** A flag of one command. Configuration keys are flags of every command, and are not listed here. */
export type Flag = {
  readonly name: string;
  /** The short form, one letter. */
  readonly letter?: string;
  /** The word for the value in help; a flag without it is switched on by its name. */
  readonly value?: string;
  readonly isRepeatable?: boolean;
  readonly choices?: readonly string[];
  readonly text: string;
};

/** A command as the command line knows it. Its work is loaded when it runs, so that help and completion stay cheap. */
export type Command = {
  readonly name: string;
  /** What follows the name: `IMAGE…`. Empty if the command takes no operands. */
  readonly operands: string;
  /** The first operands that completion offers. */
  readonly operandChoices?: readonly string[];
  /** Whether an operand may be the name of a pod. */
  readonly hasPodOperands?: boolean;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What the help of the command says before the flags; the summary stands above it. */
  readonly description?: string;
  readonly flags: readonly Flag[];
  /** What `--output` can be; default: table, json, yaml. A command with none has no such flag. */
  readonly forms?: readonly string[];
  readonly listsKeys?: boolean;
  /** The first operands with which the help does not list them. */
  readonly actionsWithoutKeys?: readonly string[];
  /** Command lines without the name of the program, each with what it does. */
  readonly examples: readonly (readonly [line: string, text: string])[];
  /** Runs the command and returns the exit code. Throws ConfigurationError for operands and flags that it does not understand. */
  run(invocation: Invocation): Promise<number>;
};

/** The command line of one run, parsed. */
export type Invocation = {
  readonly operands: readonly string[];
  /** The value of a flag of this command; undefined if it is not given. */
  text(flag: string): string | undefined;
  /** The values of a flag that may be given several times. */
  texts(flag: string): readonly string[];
  isSet(flag: string): boolean;
  readonly surroundings: Surroundings;
  /** The value of `--output`; `table` for a form that only this command has. */
  readonly output: Context['output'];
  readonly form: string;
  /** The value of `--config`; undefined if it is not given. */
  readonly configFile: string | undefined;
  /** Loads the configuration from the command line, the environment and `--config`. Throws ConfigurationError with every problem. */
  context(): Promise<Context>;
  /** Loads the configuration of the controller in the cluster; see `clusterContext` in `context.ts`. */
  clusterContext(reading?: ClusterReading): Promise<Context>;
};
