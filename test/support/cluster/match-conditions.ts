import { IGNORE_LABEL } from '../../../src/names.ts';
import { at, type JsonObject, text } from './json.ts';

type Condition = (request: JsonObject) => boolean;

/** The CEL expressions that are known, each by its text and as what it says of the request of an AdmissionReview. */
const CONDITIONS: Readonly<Record<string, Condition>> = {
  "!has(object.spec.nodeName) || object.spec.nodeName == ''": (request) =>
    (at(request, 'object', 'spec', 'nodeName') ?? '') === '',
  "!(request.namespace in ['archaware', 'kube-node-lease'])": (request) =>
    !['archaware', 'kube-node-lease'].includes(text(request.namespace)),
  "!has(request.options) || request.options.?fieldManager.orValue('') != 'archaware-controller'": (request) =>
    at(request, 'options', 'fieldManager') !== 'archaware-controller',
  "!has(object.metadata.labels) || object.metadata.labels[?'archaware.dev/ignore'].orValue('') != 'true'": (request) =>
    at(request, 'object', 'metadata', 'labels', IGNORE_LABEL) !== 'true',
};

export const knownCondition = (expression: string): Condition | undefined => CONDITIONS[expression];
