import { type Context, EXIT } from '../app/context.ts';
import { runReplica } from '../app/replica/replica.ts';

/** Runs a replica until the signal aborts. Throws what keeps it from starting. */
export async function run(context: Context): Promise<number> {
  try {
    await runReplica(context);
  } catch (error) {
    // Asked to end before it had started: what broke off is not a failure.
    if (!context.signal.aborted) throw error;
  }
  return EXIT.done;
}
