import type { Connection } from '../../app/connect.ts';
import type { StatusProblem } from '../../app/leader-status.ts';
import { when } from '../../app/replica/known.ts';
import type { Config } from '../../config/schema.ts';
import { matchesAnyGlob } from '../../kit/glob.ts';
import { isObject } from '../../kit/json.ts';
import { find } from '../../kube/read.ts';
import { knownImagesPath, PLACE_POLICY, PROBE_FIELD_MANAGER } from '../../names.ts';
import { readPodRecord } from '../../placement/objects/pod-record.ts';
import { NOT_YET, readAnswers } from '../../placement/publish/known-images.ts';
import { type Facts, hasLeader, isGuess, presentWord, type Read, readValue, tried } from './facts.ts';
import { testPod } from './webhook.ts';

/** Finds out what the API server does with pods of published images, and whether it should. */
export async function tryPublication(
  connection: Connection,
  config: Config,
  signal: AbortSignal,
): Promise<Pick<Facts, 'publication' | 'placesByLeftovers'>> {
  const placed = await tryPolicy(connection, config, signal);
  return config.placement.publish
    ? { publication: placed, placesByLeftovers: false }
    : { publication: undefined, placesByLeftovers: readValue(placed) === true };
}

/** Tries the policy archaware-place by a dry run of a pod of a published image in archaware's own namespace. */
async function tryPolicy(
  { client, installation: { namespace: own }, leaseNamespace }: Connection,
  config: Config,
  signal: AbortSignal,
): Promise<Read<boolean | undefined>> {
  const path = knownImagesPath(leaseNamespace);
  const known = await tried('get knownimages.archaware.dev', async () =>
    readAnswers((await find(client, path, signal)) ?? {}),
  );
  if (known.kind === 'unread') return known;
  const [image] = known.value.keys();
  // The policy leaves such a namespace alone.
  if (image === undefined || matchesAnyGlob(config.pods.excludeNamespaces, own))
    return { kind: 'read', value: undefined };
  return tried(`create pods in ${own} (dry run)`, async () => {
    const query = `?dryRun=All&fieldManager=${PROBE_FIELD_MANAGER}`;
    const pods = `/api/v1/namespaces/${encodeURIComponent(own)}/pods`;
    const answer = await client.request('create', `${pods}${query}`, {
      body: testPod({ generateName: 'archaware-probe-', namespace: own }, image),
      signal,
    });
    return isObject(answer) && readPodRecord(answer)?.byPolicy === true;
  });
}

/** Returns the line `published`; empty if nothing should be published. */
export function publicationTexts(facts: Facts): string[] {
  const { publication } = facts;
  const word = presentWord(facts)?.published;
  if (publication === undefined) return [];
  const inForce =
    publication.kind === 'unread'
      ? `whether ${PLACE_POLICY} is in force is unknown: ${publication.why}`
      : publication.value === undefined
        ? `nothing to try ${PLACE_POLICY} with`
        : `${PLACE_POLICY} is ${publication.value ? '' : 'not '}in force (dry run)`;
  if (word === undefined)
    return [
      `unknown: ${hasLeader(facts) === true ? 'the leader has not said it yet' : 'no replica leads'}; ${inForce}`,
    ];
  const age =
    word.written === undefined
      ? ''
      : `, written ${Math.max(0, Math.round((facts.now - Date.parse(word.written)) / 1000))} s ago`;
  const problem = word.problem === undefined ? '' : ` (${word.problem})`;
  return [`${word.images} images${age}${problem}; ${inForce}`];
}

/** Returns the problems of what should be published. */
export function publicationProblems(facts: Facts): StatusProblem[] {
  const problem = presentWord(facts)?.published?.problem;
  return [
    ...when(problem !== undefined && problem !== NOT_YET, `known images are not published: ${problem}`, ADVICE),
    ...when(
      facts.publication !== undefined && readValue(facts.publication) === false,
      `new pods of published images are not placed as they are created: ${PLACE_POLICY} is not in force`,
      ADVICE,
    ),
    ...when(
      facts.placesByLeftovers && !isGuess(facts),
      `placement.publish is false, and ${PLACE_POLICY} still places new pods, by what was published before: nothing checks any more whether that is true`,
      'kubectl delete --ignore-not-found -f manifests/publish.yaml, or run helm upgrade (docs/admission.md)',
    ),
  ];
}

const ADVICE =
  'apply manifests/publish.yaml, or run helm upgrade; after the first time it takes some 20 seconds (docs/admission.md)';
