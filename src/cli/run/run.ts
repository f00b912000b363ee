import { type Context, EXIT } from '../../app/context.ts';
import { runReplica } from '../../app/replica/replica.ts';

/** Runs a replica until the signal aborts. Throws any error that prevents the start. */
export async function run(context: Context): Promise<number> {
  try {
    await runReplica(context);
  } catch (error) {
    // After SIGTERM during the start, an interrupted request is not a failure.
    if (!context.signal.aborted) throw error;
  }
  return EXIT.done;
}
