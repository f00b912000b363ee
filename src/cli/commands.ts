import { checkCommand } from './check/command.ts';
import { cleanCommand } from './clean/command.ts';
import type { Command } from './command.ts';
import { completionCommand } from './completion/command.ts';
import { configCommand } from './config/command.ts';
import { explainCommand } from './explain/command.ts';
import { inspectCommand } from './inspect/command.ts';
import { planCommand } from './plan/command.ts';
import { reportCommand } from './report/command.ts';
import { runCommand } from './run/command.ts';
import { statusCommand } from './status/command.ts';
import { versionCommand } from './version/command.ts';

/** The commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  runCommand,
  statusCommand,
  planCommand,
  explainCommand,
  inspectCommand,
  reportCommand,
  checkCommand,
  cleanCommand,
  configCommand,
  completionCommand,
  versionCommand,
];
