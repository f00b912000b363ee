import { type Context, EXIT } from '../../app/surroundings.ts';
import { valueText } from '../output.ts';
import { createPaint } from '../paint.ts';
import { isBlind } from './facts.ts';
import { problemsOf } from './problems.ts';
import { gatherFacts } from './read-facts.ts';
import { statusOf, unreadLines } from './shape.ts';
import { statusText } from './text.ts';

/** Prints whether archaware works, in some ten lines. Writes nothing. Exit code 2 if there are problems; 1 if nothing could be found out. */
export async function status(context: Context, testNamespace: string | undefined): Promise<number> {
  const { output, columns, print, note } = context;
  context.status?.('asking the cluster …');
  const facts = await gatherFacts(context, testNamespace).finally(() => context.status?.(''));
  const problems = problemsOf(facts);
  if (output === 'table') print(statusText(facts, problems, createPaint(context), columns));
  else {
    for (const line of unreadLines(facts)) note(line);
    print(valueText(statusOf(facts, problems), output));
  }
  if (problems.length > 0) return EXIT.found;
  if (!isBlind(facts)) return EXIT.done;
  note('could not find out whether the controller works');
  return EXIT.failed;
}
