import { at, isObject, type JsonObject, list, object, objects, text } from '../json.ts';
import { badRequest } from './status.ts';

export type Predicate = (item: JsonObject) => boolean;

/** A `labelSelector` query: equality, `in`, `notin`, existence. */
export function labelSelector(query: string): Predicate {
  const terms = query
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map(labelTerm);
  return (item) => {
    const labels = object(at(item, 'metadata', 'labels'));
    return terms.every((term) => term(labels));
  };
}

function labelTerm(term: string): Predicate {
  const set = /^(\S+)\s+(in|notin)\s*\(([^)]*)\)$/.exec(term);
  if (set) {
    const [, key = '', operator, values = ''] = set;
    const wanted = values.split(',').map((value) => value.trim());
    return expression({ key, operator: operator === 'in' ? 'In' : 'NotIn', values: wanted });
  }
  const equality = /^([^!=\s]+)\s*(==|=|!=)\s*(\S*)$/.exec(term);
  if (equality) {
    const [, key = '', operator, value = ''] = equality;
    return expression({ key, operator: operator === '!=' ? 'NotIn' : 'In', values: [value] });
  }
  if (/^!?[\w./-]+$/.test(term)) {
    return expression({ key: term.replace('!', ''), operator: term.startsWith('!') ? 'DoesNotExist' : 'Exists' });
  }
  throw badRequest(`unable to parse requirement: ${term}`);
}

/** A `matchExpressions` entry over labels, or over fields given as a flat map. */
export function expression(requirement: JsonObject): Predicate {
  const key = text(requirement.key);
  const values = new Set(list(requirement.values));
  return (labels) => {
    const value = labels[key];
    switch (requirement.operator) {
      case 'In':
        return value !== undefined && values.has(value);
      case 'NotIn':
        return value === undefined || !values.has(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      default:
        throw badRequest(`the embedded cluster knows no operator ${String(requirement.operator)}`);
    }
  };
}

/** A `metav1.LabelSelector` object over an object's labels; an empty one matches everything, an absent one nothing. */
export function objectSelector(selector: unknown): Predicate {
  if (!isObject(selector)) return () => false;
  const wanted = Object.entries(object(selector.matchLabels));
  const terms = objects(selector.matchExpressions).map(expression);
  return (item) => {
    const labels = object(at(item, 'metadata', 'labels'));
    return wanted.every(([key, value]) => labels[key] === value) && terms.every((term) => term(labels));
  };
}

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  pods: ['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'spec.serviceAccountName', 'status.phase'],
  nodes: ['spec.unschedulable'],
  namespaces: ['status.phase'],
  secrets: ['type'],
  events: 'type reason reportingController regarding.kind regarding.name regarding.namespace regarding.uid'.split(' '),
};

/** A `fieldSelector` query; a field that the resource does not offer answers 400, as on the real server. */
export function fieldSelector(plural: string, query: string): Predicate {
  const terms = query
    .split(',')
    .filter((term) => term !== '')
    .map((term) => {
      const [, field = '', operator = '', value = ''] = /^([^!=]+)(==|=|!=)(.*)$/.exec(term) ?? [];
      const known = field === 'metadata.name' || field === 'metadata.namespace' || FIELDS[plural]?.includes(field);
      if (!known) throw badRequest(`field label not supported: ${field || term}`);
      return { path: field.split('.'), negated: operator === '!=', value };
    });
  return (item) => terms.every(({ path, negated, value }) => (String(at(item, ...path) ?? '') === value) !== negated);
}
