/** What may run beside the controller, in its container (`kubectl exec`), where a command shares the controller's memory. */
import { wordsAfterProgram } from '../app/deployed.ts';

/** Where a process was started. */
export type Place = {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The words with which the first process of the container was started; empty if that is not known. */
  readonly firstProcess: readonly string[];
  readonly pid: number;
};

/**
 * Returns the words of the controller's command line, if the process was started in its container, by `kubectl exec`.
 * hack/image/archaware.sh decides by the same rule.
 */
export function controllerWords({ environment, firstProcess, pid }: Place): string[] | undefined {
  if (pid === 1 || environment.KUBERNETES_SERVICE_HOST === undefined) return undefined;
  if (!firstProcess.some((word) => word.endsWith('main.js'))) return undefined;
  const words = wordsAfterProgram(firstProcess);
  const [command = ''] = words;
  return command === 'run' || command.startsWith('-') ? words : undefined;
}

/**
 * Returns why a command does not run beside the controller, and what to do; undefined if it does. A command that looks at the whole
 * cluster may need more memory than the container has, and `clean` stops the controller in whose container it would run.
 */
export function refusalBesideController(
  command: string,
  { isOneNamespace }: { readonly isOneNamespace: boolean },
): string | undefined {
  switch (command) {
    case 'clean':
    case 'report':
      return `${command}: does not run in the controller's container; run it outside the cluster or as a Job`;
    case 'plan':
      return isOneNamespace
        ? undefined
        : "plan: runs in the controller's container for one namespace only; add -n NAMESPACE, or run it outside the cluster or as a Job";
    default:
      return undefined;
  }
}
