import { type Circumstances, imagesToAsk } from '../../analysis/readiness/assess.ts';
import { checkObjects } from '../../analysis/readiness/check-objects.ts';
import { countNotLookedUp, notLookedUpText } from '../../analysis/readiness/report-images.ts';
import { type Context, EXIT } from '../../app/surroundings.ts';
import { toSettings } from '../../config/settings.ts';
import { ConfigurationError } from '../../config/shown-problems.ts';
import { type JsonObject, listAt, objectAt, stringAt } from '../../kit/json.ts';
import { printable } from '../../kit/printable.ts';
import { WORKLOAD_KINDS } from '../../placement/objects/workload.ts';
import { createLookups, type Question } from '../lookups/lookups.ts';
import { WITHOUT_CLUSTER, withLookups } from '../lookups/with-lookups.ts';
import { inputName, readObjects } from '../manifest-objects.ts';
import { createPaint } from '../paint.ts';
import { gatherFiles } from '../report/read-workloads.ts';
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
      const circumstances: Circumstances = {
        settings: toSettings(config),
        architectures: on,
        namespaceOf: (name) => ({ name: name || 'default', labels: {}, preferred: undefined }),
        namesOf: images.namesOf,
        assessesAll: true,
      };
      const lookups = createLookups(resolver, registryOf, signal);
      const asked = new Set<string>();
      for (const part of units.flatMap(({ parts }) => parts)) {
        for (const image of imagesToAsk(part, circumstances)) {
          lookups.ask(questionOf(image));
          asked.add(image.image);
        }
      }
      await lookups.settle((done, total) => progress.show('images', done, total));
      const claimed = checkObjects(units, on, circumstances, (image) => lookups.answerTo(questionOf(image)));
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
      const failed = result.missing.flatMap(({ image = '', code }) =>
        code === undefined ? [] : [{ image, code, registry: registryOf(image) }],
      );
      const notKnown = notLookedUpText(countNotLookedUp(failed));
      if (notKnown !== undefined) note(notKnown);
      if (form === 'table') for (const line of checkNotes(result)) note(line);
      print(renderCheck(result, on, form, seen));
      return result.missing.length > 0 ? EXIT.found : EXIT.done;
    },
  );
}

/** `check` reads no Secrets of a cluster, so private images need `credentials.dockerConfigFiles`. */
function questionOf(image: Question['image']): Question {
  return { image, namespace: 'default', pullSecrets: [] };
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
