import { parse } from 'yaml';
import { at, listAt } from '../../../hack/cluster/json.ts';
import type { ManifestObject } from '../../../hack/manifests/kustomize.ts';
import { allKeys, assign, valueAt } from '../../../src/config/keys.ts';

/** What Helm's conventions and its own bookkeeping add to labels, and what makes pods restart. */
const OF_HELM = [
  'app.kubernetes.io/instance',
  'app.kubernetes.io/version',
  'app.kubernetes.io/managed-by',
  'helm.sh/chart',
];
const RESTART = 'archaware.dev/restart';

/**
 * The objects by kind and name, without what may differ between the chart and kustomize: the Namespace, which helm makes
 * itself; labels of Helm's; the annotation that makes pods restart; `imagePullPolicy`, which has the value of its default; the
 * order of a role's rules. A configuration is compared by the values of its keys, defaults included.
 */
export function comparable(objects: readonly ManifestObject[]): Record<string, unknown> {
  const kept = objects.filter(({ kind }) => kind !== 'Namespace');
  return Object.fromEntries(kept.map((object) => [`${object.kind} ${object.metadata.name}`, alike(object)]));
}

function alike(object: ManifestObject): unknown {
  const metadata = withoutHelm(object.metadata);
  switch (object.kind) {
    case 'ConfigMap': {
      const text = at(object, 'data', 'config.yaml');
      return { ...object, metadata, data: typeof text === 'string' ? effective(parse(text)) : object.data };
    }
    case 'ClusterRole':
    case 'Role':
      return {
        ...object,
        metadata,
        rules: listAt(object, 'rules')
          .map((rule) => JSON.stringify(sorted(rule)))
          .sort(),
      };
    case 'Deployment': {
      const spec = Object(object.spec);
      const podSpec = Object(at(spec, 'template', 'spec'));
      const containers = listAt(podSpec, 'containers').map((container) => {
        const { imagePullPolicy, ...rest } = Object(container);
        return imagePullPolicy === 'IfNotPresent' || imagePullPolicy === undefined ? rest : container;
      });
      const template = { metadata: withoutHelm(at(spec, 'template', 'metadata')), spec: { ...podSpec, containers } };
      return { ...object, metadata, spec: { ...spec, template } };
    }
    default:
      return { ...object, metadata };
  }
}

function withoutHelm(metadata: unknown): unknown {
  const { labels, annotations, ...rest } = Object(metadata);
  const without = (map: unknown, names: readonly string[]) =>
    Object.fromEntries(Object.entries(Object(map)).filter(([name]) => !names.includes(name)));
  return { ...rest, labels: without(labels, OF_HELM), annotations: without(annotations, [RESTART]) };
}

function effective(config: unknown): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const { path, fallback, schema } of allKeys()) {
    const given = valueAt(config, path);
    assign(all, path, given === undefined ? fallback : schema.parse(given));
  }
  return all;
}

function sorted(rule: unknown): unknown {
  return Object.fromEntries(Object.entries(Object(rule)).sort(([one], [other]) => one.localeCompare(other)));
}
