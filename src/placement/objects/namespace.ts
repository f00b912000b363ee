import { type JsonObject, numberAt, objectAt, parseObject, stringAt, stringsAt, textsAt } from '../../kit/json.ts';
import { type Operation, pointerPart } from '../../kit/json-patch.ts';
import { PREFERRED, REPORT_ANNOTATION, REPORT_RESULT_ANNOTATION } from '../../names.ts';

/** A namespace, reduced to the fields that archaware reads. */
export type Namespace = {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly preferred: string | undefined;
  /** Whether its people asked the leader to report there. */
  readonly wantsReport?: true;
  /** The report as it stands; empty: it is too long to be the leader's. */
  readonly report?: string;
};

/** What the leader reports about a namespace. Whoever may write the namespace can write it as well: it is for people, and decides nothing. */
export type NamespaceReport = {
  /** When it was written, as ISO 8601. */
  readonly time: string;
  /** The policies that apply to its pods; `default`: the settings for all. */
  readonly policies: readonly string[];
  /** How many pods are `placed`, `waiting`, `held`, `open`, `ignored`. */
  readonly pods: Readonly<Record<string, number>>;
  /** How many pods run on nodes of which architecture. */
  readonly runsOn: Readonly<Record<string, number>>;
  /** The pod that has waited longest for its images or for a common architecture, and since when; absent: none waits. */
  readonly oldestWaiting?: { readonly name: string; readonly since: string };
};

/** The most bytes of a report. A longer one is somebody else's, and is not kept. */
export const LONGEST_REPORT = 2_048;

/** Reads a namespace from the API server's object. Never throws. */
export function readNamespace(object: JsonObject): Namespace {
  const metadata = objectAt(object, 'metadata');
  const annotations = objectAt(metadata, 'annotations');
  const report = stringAt(annotations, REPORT_RESULT_ANNOTATION);
  return {
    name: stringAt(metadata, 'name') ?? '',
    uid: stringAt(metadata, 'uid') ?? '',
    resourceVersion: stringAt(metadata, 'resourceVersion') ?? '',
    labels: stringsAt(metadata, 'labels'),
    preferred: stringAt(annotations, PREFERRED),
    ...(annotations[REPORT_ANNOTATION] === 'true' ? { wantsReport: true } : {}),
    ...(report === undefined ? {} : { report: report.length > LONGEST_REPORT ? '' : report }),
  };
}

function countsAt(object: JsonObject, field: string): Readonly<Record<string, number>> {
  const found = objectAt(object, field);
  return Object.fromEntries(
    Object.keys(found).flatMap((key) => {
      const count = numberAt(found, key);
      return count === undefined ? [] : [[key, count]];
    }),
  );
}

/** Reads a report; undefined if it is none. */
export function readNamespaceReport(text: string | undefined): NamespaceReport | undefined {
  const value = text === undefined ? undefined : parseObject(text);
  const time = value && stringAt(value, 'time');
  if (value === undefined || time === undefined) return undefined;
  const oldest = objectAt(value, 'oldestWaiting');
  const [name, since] = [stringAt(oldest, 'name'), stringAt(oldest, 'since')];
  return {
    time,
    policies: textsAt(value, 'policies'),
    pods: countsAt(value, 'pods'),
    runsOn: countsAt(value, 'runsOn'),
    ...(name === undefined || since === undefined ? {} : { oldestWaiting: { name, since } }),
  };
}

const RESULT = `/metadata/annotations/${pointerPart(REPORT_RESULT_ANNOTATION)}`;

/** Returns the patch that writes a report where its people ask for one, or removes it (`text` is undefined). */
export function reportPatch({ uid }: Pick<Namespace, 'uid'>, text: string | undefined): Operation[] {
  const isSame: Operation = { op: 'test', path: '/metadata/uid', value: uid };
  if (text === undefined) return [isSame, { op: 'remove', path: RESULT }];
  const isWanted = `/metadata/annotations/${pointerPart(REPORT_ANNOTATION)}`;
  return [isSame, { op: 'test', path: isWanted, value: 'true' }, { op: 'add', path: RESULT, value: text }];
}
