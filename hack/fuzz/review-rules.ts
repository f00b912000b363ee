import { printable } from '../../src/kit/printable.ts';
import { ARCHITECTURE_GATE, MANAGED_ANNOTATION, TOLERATIONS_ANNOTATION } from '../../src/names.ts';
import type { Reviewed } from '../../src/webhook/body.ts';
import { assign, at, equal, isObject, type JsonObject, objects } from '../../test/simulator/json.ts';
import { jsonPatch } from '../../test/simulator/objects/patch.ts';
import { podOfDaemonSet, whyRefused } from './pod-shape.ts';
import { must } from './target.ts';

type Review = (body: unknown) => Reviewed;

/** The most bytes of a shown text. */
const MOST_SHOWN = 4096;

/** Whether a text may be shown as it is: bounded, and nothing in it moves a cursor or is hidden. */
export const isPrintable = (text: string): boolean => printable(text, MOST_SHOWN) === text;

/** Checks the result of a review of a body; `review` is called again with its own first answer. */
export function checkReviewed(body: JsonObject, { outcome, text }: Reviewed, review: Review): void {
  const answer: unknown = JSON.parse(text);
  const said = at(answer, 'response');
  must(isObject(answer), 'the answer is an object');
  must(answer.kind === 'AdmissionReview' && answer.apiVersion === body.apiVersion, 'it is an AdmissionReview');
  must(isObject(said) && said.uid === at(body, 'request', 'uid'), 'it answers this request');
  const patch = patchIn(said);
  must((patch === undefined) === (outcome === 'unchanged' || outcome === 'rejected'), `a patch comes with ${outcome}`);
  must(said.allowed === (outcome !== 'rejected'), 'only what is rejected is not allowed');
  if (outcome === 'rejected') {
    const message = at(said, 'status', 'message');
    must(typeof message === 'string' && message !== '' && isPrintable(message), 'a refusal can be shown');
  }
  const before = at(body, 'request', 'object');
  const asPod = at(body, 'request', 'resource', 'resource') === 'pods' ? (pod: JsonObject) => pod : podOfDaemonSet;
  // An object that the API server would refuse anyway may become anything.
  if (patch === undefined || !isObject(before) || whyRefused(asPod(before)) !== undefined) return;
  const after = inOrder(jsonPatch(before, patch));
  const refused = whyRefused(asPod(after));
  must(refused === undefined, `the patched object is taken: ${refused}`);
  must(equal(withoutOurFields(before), withoutOurFields(after)), 'nothing but our fields changes');
  if (!isRecorded(before)) checkWishes(asPod(before), asPod(after));
  const gates = objects(at(after, 'spec', 'schedulingGates')).filter(({ name }) => name === ARCHITECTURE_GATE);
  must(gates.length === (outcome === 'gated' ? 1 : 0), `gates of ours where it is ${outcome}`);
  const again = review(assign(body, ['request', 'object'], after));
  must(again.outcome === 'unchanged', `its own answer stays as it is, but was ${again.outcome}`);
}

/** Returns tolerations with their fields in the order in which Go writes them; a patch puts replaced fields last. */
function inOrder(object: JsonObject): JsonObject {
  const paths = [
    ['spec', 'tolerations'],
    ['spec', 'template', 'spec', 'tolerations'],
  ];
  return paths.reduce((current, path) => {
    const present = at(current, ...path);
    if (!Array.isArray(present)) return current;
    const ordered = present.map(({ key, operator, value, effect, ...rest }) => {
      const fields = Object.entries({ key, operator, value, effect }).filter(([, field]) => field !== undefined);
      return { ...Object.fromEntries(fields), ...rest };
    });
    return assign(current, path, ordered);
  }, object);
}

/** Returns the text of the patch. */
function patchIn(said: JsonObject): string | undefined {
  const { patch, patchType } = said;
  must((patch === undefined) === (patchType === undefined), 'a patch says its type');
  if (patch === undefined) return undefined;
  must(typeof patch === 'string' && patchType === 'JSONPatch', 'a patch is a JSON Patch');
  const text = Buffer.from(patch, 'base64').toString();
  must(Buffer.from(text).toString('base64') === patch, 'a patch is base64');
  const operations: unknown = JSON.parse(text);
  must(Array.isArray(operations) && operations.length > 0, 'a patch changes something');
  return text;
}

/** The author's restrictions on nodes stay, and may only become narrower. */
function checkWishes(before: JsonObject, after: JsonObject): void {
  const [old, now] = [before, after].map((pod) => objects(at(pod, 'spec', 'tolerations')));
  must(equal(now?.slice(0, old?.length), old), "the author's tolerations stay");
  const path = ['spec', 'affinity', 'nodeAffinity'];
  const preferred = [...path, 'preferredDuringSchedulingIgnoredDuringExecution'];
  const [oldPreferred, nowPreferred] = [before, after].map((pod) => objects(at(pod, ...preferred)));
  must(equal(nowPreferred?.slice(0, oldPreferred?.length), oldPreferred), "the author's preferences stay");
  const required = [...path, 'requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const [oldTerms = [], nowTerms = []] = [before, after].map((pod) => objects(at(pod, ...required)));
  if (oldTerms.length === 0) return;
  must(nowTerms.length === oldTerms.length, 'no required term comes or goes');
  for (const [index, term] of oldTerms.entries()) {
    const [expressions, narrower] = [term, nowTerms[index]].map((each) => objects(at(each, 'matchExpressions')));
    must(equal(narrower?.slice(0, expressions?.length), expressions), 'a required term is only appended to');
    must(equal(at(nowTerms[index], 'matchFields'), at(term, 'matchFields')), 'the fields that it matches stay');
  }
}

/** Whether the object claims, truly or not, that a part of it belongs to the controller. */
function isRecorded(object: JsonObject): boolean {
  return [MANAGED_ANNOTATION, TOLERATIONS_ANNOTATION].some(
    (name) => at(object, 'metadata', 'annotations', name) !== undefined,
  );
}

function withoutOurFields(object: JsonObject): JsonObject {
  const ofPod = [['tolerations'], ['affinity', 'nodeAffinity'], ['affinity'], ['schedulingGates']];
  const paths = [
    ...[MANAGED_ANNOTATION, TOLERATIONS_ANNOTATION].map((name) => ['metadata', 'annotations', name]),
    ['metadata', 'annotations'],
    ...ofPod.flatMap((path) => [
      ['spec', ...path],
      ['spec', 'template', 'spec', ...path],
    ]),
  ];
  return paths.reduce((current, path) => {
    const value = at(current, ...path);
    // A parent of the controller's field is removed only if it is empty.
    const isHolder = path.at(-1) === 'annotations' || path.at(-1) === 'affinity';
    if (value === undefined || (isHolder && Object.keys(isObject(value) ? value : {}).length > 0)) return current;
    return assign(current, path, undefined);
  }, object);
}
