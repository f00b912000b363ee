import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { isObject } from '../../src/kit/json.ts';
import { at, list, objects, text } from '../../test/simulator/json.ts';

/** One object of the API for which a part of the manifests grants verbs. */
export type Grant = {
  /** `base`, or the name of a component. */
  readonly part: string;
  /** `ClusterRole archaware-controller`. */
  readonly role: string;
  /** `pods`, `daemonsets.apps`, or `secrets/name` for a single object. */
  readonly object: string;
  readonly verbs: readonly string[];
};

/** A kustomization of overlays, and its parts. */
export type Overlay = { readonly name: string; readonly parts: readonly string[] };

const KUSTOMIZE = fileURLToPath(new URL('../../manifests/kustomize/', import.meta.url));

/** Returns everything that base and components grant to the controller's service account. */
export function grants(): Grant[] {
  const parts = [
    { part: 'base', directory: 'base' },
    ...foldersOf('components').map((part) => ({ part, directory: `components/${part}` })),
  ];
  const documents = parts.flatMap(({ part, directory }) =>
    filesOf(directory).flatMap((file) => read(`${directory}/${file}`).map((content) => ({ part, file, content }))),
  );
  const roles = new Map<string, readonly Record<string, unknown>[]>();
  const found: Grant[] = [];
  for (const { part, content } of documents) {
    const kind = text(at(content, 'kind'));
    if (kind !== 'Role' && kind !== 'ClusterRole') continue;
    const role = `${kind} ${text(at(content, 'metadata', 'name'))}`;
    const rules = objects(at(content, 'rules'));
    roles.set(role, rules);
    found.push(...rules.flatMap((rule) => grantsOf(part, role, rule)));
  }
  for (const { part, content } of documents) {
    for (const patch of objects(at(content, 'patches'))) {
      const target = `${text(at(patch, 'target', 'kind'))} ${text(at(patch, 'target', 'name'))}`;
      const rules = roles.get(target);
      if (rules === undefined) continue;
      for (const operation of read(`components/${part}/${text(patch.path)}`).flatMap(objects)) {
        // The page's introduction describes what a component removes.
        if (operation.op === 'test' || operation.op === 'remove') continue;
        found.push(...grantsOf(part, target, addedBy(operation, rules)));
      }
    }
  }
  const order = parts.map(({ part }) => part);
  return found.sort((one, other) => order.indexOf(one.part) - order.indexOf(other.part));
}

/** Returns the overlays and their parts. */
export function overlays(): Overlay[] {
  return foldersOf('overlays').map((name) => {
    const kustomization = read(`overlays/${name}/kustomization.yaml`)[0];
    const named = [...list(at(kustomization, 'resources')), ...list(at(kustomization, 'components'))].map(text);
    return { name, parts: named.map((path) => path.split('/').at(-1) ?? path) };
  });
}

/** Returns the rule that an operation of a JSON Patch adds, or to which it adds verbs. */
function addedBy(
  operation: Record<string, unknown>,
  rules: readonly Record<string, unknown>[],
): Record<string, unknown> {
  const path = text(operation.path);
  const index = /^\/rules\/(\d+)\/verbs\/-$/.exec(path)?.[1];
  const rule = index === undefined ? operation.value : { ...rules[Number(index)], verbs: [operation.value] };
  if (operation.op !== 'add' || (index === undefined && path !== '/rules/-') || !isObject(rule)) {
    throw new Error(`hack/reference/grants.ts does not know how to read the patch ${JSON.stringify(operation)}`);
  }
  return rule;
}

function grantsOf(part: string, role: string, rule: Record<string, unknown>): Grant[] {
  const names = list(rule.resourceNames).map((name) => `/${text(name)}`);
  const group = text(list(rule.apiGroups)[0]);
  const verbs = list(rule.verbs).map(text);
  return list(rule.resources).flatMap((resource) =>
    (names.length === 0 ? [''] : names).map((name) => ({
      part,
      role,
      object: `${text(resource)}${group === '' ? '' : `.${group}`}${name}`,
      verbs,
    })),
  );
}

function read(file: string): unknown[] {
  const documents = parseAllDocuments(readFileSync(`${KUSTOMIZE}${file}`, 'utf8'));
  return documents.map((document): unknown => document.toJS());
}

function foldersOf(directory: string): string[] {
  const entries = readdirSync(`${KUSTOMIZE}${directory}`, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();
}

function filesOf(directory: string): string[] {
  return readdirSync(`${KUSTOMIZE}${directory}`)
    .filter((name) => name.endsWith('.yaml'))
    .sort();
}
