import type { Check, Missing } from '../../analysis/readiness/check-objects.ts';
import { readWorkload } from '../../analysis/workloads/workload.ts';
import { accessFor } from '../../controllers/image-source.ts';
import { each } from '../../kit/fairness/each.ts';
import { type JsonObject, listAt, stringAt, textsAt } from '../../kit/json.ts';
import type { Override } from '../../oci/deep/find-program.ts';
import { type Inside, lookIntoLayers } from '../../oci/deep/look-inside.ts';
import { ImageError } from '../../oci/errors.ts';
import { type NamedObject, objectName } from '../../placement/objects/kinds.ts';
import type { Asking } from '../lookups/with-lookups.ts';
import { insideText, nameOf } from '../output.ts';

type Starts = NamedObject & {
  readonly os: string;
  readonly containers: readonly { readonly name: string; readonly image: string; readonly override: Override }[];
};

/** What was found in the layers for one container. */
type Started = NamedObject & Inside & { readonly image: string; readonly container: string };

export type DeepCheck = Check & { readonly deep: readonly Started[] };

type ProgramsOptions = {
  readonly on: readonly string[];
  /** Whether a registry was asked about an image. */
  readonly isAsked: (image: string) => boolean;
};

/** Images whose layers are read at the same time. */
const AT_ONCE = 4;

/** Reads what the containers start out of the layers of their images. An architecture whose program is for another one is missing. */
export async function withPrograms(
  check: Check,
  objects: readonly JsonObject[],
  { on, isAsked }: ProgramsOptions,
  asking: Asking,
): Promise<DeepCheck> {
  const starts = objects.flatMap(startsOf);
  const isChecked = (one: Starts): boolean => check.objects.some((object) => nameOf(object) === nameOf(one));
  const users = starts.filter(isChecked);
  /** The ways in which each image is started, each once. */
  const wanted = new Map<string, { image: string; os: string; overrides: Map<string, Override> }>();
  for (const { os, containers } of users) {
    for (const { image, override } of containers) {
      if (!isAsked(image)) continue;
      const key = `${os} ${image}`;
      const entry = wanted.get(key) ?? { image, os, overrides: new Map() };
      entry.overrides.set(JSON.stringify(override), override);
      wanted.set(key, entry);
    }
  }
  const found = new Map<string, readonly Inside[]>();
  let done = 0;
  await each([...wanted], AT_ONCE, async ([key, { image, os, overrides }]) => {
    const inside = await lookInside(image, os, on, [...overrides.values()], asking);
    for (const [index, name] of [...overrides.keys()].entries()) {
      found.set(
        `${key} ${name}`,
        inside.flatMap((platform) => platform[index] ?? []),
      );
    }
    done += 1;
    asking.progress.show('images whose layers are read', done, wanted.size);
  });
  const deep = users.flatMap(({ os, containers, ...named }) =>
    containers.flatMap(({ name, image, override }): Started[] =>
      (found.get(`${os} ${image} ${JSON.stringify(override)}`) ?? []).map((each) => ({
        ...named,
        image,
        container: name,
        ...each,
      })),
    ),
  );
  return merged(check, deep);
}

/** Adds the lies to what is missing. */
function merged(check: Check, deep: readonly Started[]): DeepCheck {
  const lies = deep.filter(({ verdict }) => verdict === 'lies');
  const found = lies.map((lie): Missing => {
    const { image, container, platform } = lie;
    const text = `${image} (${container}) ${insideText(lie)}${lie.reason === undefined ? '' : ` (${lie.reason})`}`;
    return { ...objectName(lie), image, containers: [container], architectures: [platform.architecture], text };
  });
  const liesFor = (id: string): readonly string[] =>
    lies.filter((lie) => nameOf(lie) === id).map(({ platform }) => platform.architecture);
  return {
    ...check,
    objects: check.objects.map((object) => ({
      ...object,
      architectures: object.architectures.filter((name) => !liesFor(nameOf(object)).includes(name)),
    })),
    missing: [...check.missing, ...found],
    deep,
  };
}

async function lookInside(
  image: string,
  os: string,
  on: readonly string[],
  overrides: readonly Override[],
  { resolver, signal }: Asking,
): Promise<readonly (readonly Inside[])[]> {
  try {
    const access = accessFor({ image, pullPolicy: '' }, 'default', []);
    const { digest, platforms } = await resolver.resolve(image, access, signal);
    const asked = platforms.filter((each) => each.os === os && on.includes(each.architecture));
    if (asked.length === 0) return [];
    try {
      return await lookIntoLayers(resolver, image, { digest, platforms: asked, overrides, access, signal });
    } catch (error) {
      if (!(error instanceof ImageError)) throw error;
      const { message: reason } = error;
      return asked.map((platform) => overrides.map(() => ({ platform, verdict: 'unknown', reason, bytesRead: 0 })));
    }
  } catch (error) {
    // It is missing already, with this error.
    if (error instanceof ImageError) return [];
    throw error;
  }
}

/** Returns lines for standard error about what could not be found out. */
export function unknownPrograms({ deep }: DeepCheck): string[] {
  return deep
    .filter(({ verdict }) => verdict === 'unknown')
    .map(
      (each) => `${nameOf(each)}: ${each.image} (${each.container}) ${insideText(each)}: ${each.reason ?? 'unknown'}`,
    );
}

function startsOf(object: JsonObject): Starts[] {
  const workload = readWorkload(object);
  if (workload === undefined) return [];
  const { spec, template } = workload;
  const containers = ['initContainers', 'containers'].flatMap((list) => listAt(spec, list) ?? []);
  return [
    {
      ...objectName(workload),
      os: template.runtime.os,
      containers: containers.map((container) => ({
        name: stringAt(container, 'name') ?? '',
        image: stringAt(container, 'image') ?? '',
        override: overrideOf(container),
      })),
    },
  ];
}

function overrideOf(container: JsonObject): Override {
  const [command, args] = [textsAt(container, 'command'), textsAt(container, 'args')];
  const path = (listAt(container, 'env') ?? []).find((each) => stringAt(each, 'name') === 'PATH');
  const value = path === undefined ? undefined : stringAt(path, 'value');
  const workingDirectory = stringAt(container, 'workingDir');
  return {
    ...(command.length > 0 ? { command } : {}),
    ...(args.length > 0 ? { args } : {}),
    ...(value === undefined ? {} : { path: value }),
    ...(workingDirectory ? { workingDirectory } : {}),
  };
}
