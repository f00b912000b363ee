import { isDeepStrictEqual } from 'node:util';
import { ARCHITECTURE_GATE, IGNORE_LABEL } from '../../../src/names.ts';
import { at, type JsonObject, objects, text } from '../json.ts';

type Condition = (request: JsonObject) => boolean;

/** The known CEL expressions: their text, and the same condition as a function of an AdmissionReview's request. */
const CONDITIONS: Readonly<Record<string, Condition>> = {
  [`!has(object.spec.nodeName) || object.spec.nodeName == '' || (has(object.spec.schedulingGates) && object.spec.schedulingGates.exists(g, g.name == '${ARCHITECTURE_GATE}'))`]:
    (request) =>
      (at(request, 'object', 'spec', 'nodeName') ?? '') === '' ||
      objects(at(request, 'object', 'spec', 'schedulingGates')).some(({ name }) => name === ARCHITECTURE_GATE),
  "!(request.namespace in ['archaware', 'kube-node-lease'])": (request) =>
    !['archaware', 'kube-node-lease'].includes(text(request.namespace)),
  "!has(request.options) || request.options.?fieldManager.orValue('') != 'archaware-controller'": (request) =>
    at(request, 'options', 'fieldManager') !== 'archaware-controller',
  "!has(object.metadata.labels) || object.metadata.labels[?'archaware.dev/ignore'].orValue('') != 'true'": (request) =>
    at(request, 'object', 'metadata', 'labels', IGNORE_LABEL) !== 'true',
  '!object.metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false))\n  && (oldObject == null || object.spec != oldObject.spec)':
    (request) =>
      !objects(at(request, 'object', 'metadata', 'ownerReferences')).some(({ controller }) => controller === true) &&
      !isDeepStrictEqual(at(request, 'object', 'spec'), at(request, 'oldObject', 'spec')),
};

export const knownCondition = (expression: string): Condition | undefined => CONDITIONS[expression];
