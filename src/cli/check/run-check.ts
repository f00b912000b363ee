import { imagesToAsk } from '../../analysis/readiness/assess.ts';
import { checkObjects } from '../../analysis/readiness/check-objects.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import { WORKLOAD_KINDS } from '../../placement/objects/workload.ts';
import { createLookups } from '../lookups/lookups.ts';
import { WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { inputName, readObjects } from '../manifest-objects.ts';
import { createPaint } from '../paint.ts';
import { circumstancesOf, gatherFiles, notLookedUp, withoutSecrets } from '../survey/workloads.ts';
import { unknownPrograms, withPrograms } from './programs-of.ts';
import { checkNotes, renderCheck } from './render-check.ts';

/** The question of one run of `check`. */
export type CheckOptions = {
  readonly form: string;
  readonly files: readonly string[];
  readonly on: readonly string[];
  /** The namespace of objects that name none. */
  readonly namespace: string | undefined;
  readonly lookupTimeoutMs: number;
  /** Whether the programs that the images start are read out of their layers. */
  readonly isDeep: boolean;
};

/** Prints the images that lack an architecture. Exit code 2 if there are some, or if an image could not be looked up. */
export async function check(
  context: Context,
  { form, files, on, namespace, lookupTimeoutMs, isDeep }: CheckOptions,
): Promise<number> {
  const { config, print, note, readInput } = context;
  const objects = await readObjects(files, readInput);
  const seen = { columns: context.columns, paint: createPaint(context) };
  return withLookups(
    context,
    { limitMs: lookupTimeoutMs, connect: WITHOUT_CLUSTER },
    async ({ resolver, images, registryOf, progress, signal }) => {
      const units = gatherFiles(objects, namespace).inventory.units();
      const circumstances = { ...circumstancesOf(config, images, on), assessesAll: true };
      const lookups = createLookups(resolver, registryOf, signal);
      const asked = new Set<string>();
      for (const part of units.flatMap(({ parts }) => parts)) {
        for (const image of imagesToAsk(part, circumstances)) {
          lookups.ask(withoutSecrets(image));
          asked.add(image.image);
        }
      }
      await lookups.settle((done, total) => progress.show('images', done, total));
      const claimed = checkObjects(units, on, circumstances, (image) => lookups.answerTo(withoutSecrets(image)));
      const isAsked = (image: string) => asked.has(image);
      const onDone = (done: number, total: number) => progress.show('images whose layers are read', done, total);
      const deep = isDeep
        ? await withPrograms(claimed, objects, { resolver, on, namespace, isAsked, signal, onDone })
        : undefined;
      const result = deep ?? claimed;
      progress.end();
      for (const line of deep === undefined ? [] : unknownPrograms(deep)) note(printable(line, 1_000));
      for (const line of unchecked(objects)) note(line);
      if (result.objects.length === 0) {
        // A program gets an empty result to read.
        if (form === 'json' || form === 'yaml') print(renderCheck(result, on, form, seen));
        throw new ConfigurationError([`check: no workload found in ${files.map(inputName).join(', ')}`]);
      }
      for (const line of notLookedUp(result.missing, registryOf)) note(line);
      if (form === 'table') for (const line of checkNotes(result)) note(line);
      print(renderCheck(result, on, form, seen));
      return result.missing.length > 0 ? EXIT.found : EXIT.done;
    },
  );
}

/** Returns a note for each kind that has a pod template in its usual place, but that archaware does not know. */
export function unchecked(objects: readonly JsonObject[]): string[] {
  const kinds = objects.flatMap((object) => {
    const kind = stringAt(object, 'kind') ?? '';
    const spec = objectAt(objectAt(objectAt(object, 'spec'), 'template'), 'spec');
    return !WORKLOAD_KINDS.includes(kind) && listAt(spec, 'containers') !== undefined ? [kind] : [];
  });
  return [...new Set(kinds)].map((kind) => `objects of the kind ${kind} have containers, but are not checked`);
}
