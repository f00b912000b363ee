import { type Context, EXIT } from '../../app/context.ts';
import { valueText } from '../output.ts';
import { gatherFacts } from './gather.ts';
import { problemsOf } from './problems.ts';
import { statusOf, unreadLines } from './shape.ts';
import { statusText } from './text.ts';

/** Prints whether archaware works, in some ten lines. Writes nothing. Exit code 2 if there are problems. */
export async function status(context: Context, testNamespace: string | undefined): Promise<number> {
  const { output, columns, print, note } = context;
  const facts = await gatherFacts(context, testNamespace);
  const problems = problemsOf(facts);
  if (output === 'table') print(statusText(facts, problems, columns));
  else {
    for (const line of unreadLines(facts)) note(line);
    print(valueText(statusOf(facts, problems), output));
  }
  return problems.length > 0 ? EXIT.found : EXIT.done;
}
