import { stringify } from 'yaml';

type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const texts: Schema = { type: 'object', additionalProperties: text };
const object = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: 'object', properties });
const list = (items: Schema): Schema => ({ type: 'array', items });

/** What the chart uses of others' kinds, in their own words; anything else is refused as an unknown field. */
const KINDS: readonly (readonly [group: string, version: string, kind: string, spec: Schema])[] = [
  [
    'monitoring.coreos.com',
    'v1',
    'ServiceMonitor',
    object({
      selector: object({ matchLabels: texts }),
      endpoints: list(object({ port: text, path: text, interval: { type: 'string', pattern: '^[0-9]+(ms|s|m|h)$' } })),
    }),
  ],
  [
    'monitoring.coreos.com',
    'v1',
    'PrometheusRule',
    object({
      groups: list(
        object({
          name: text,
          rules: list(object({ alert: text, expr: text, for: text, labels: texts, annotations: texts })),
        }),
      ),
    }),
  ],
  ['cert-manager.io', 'v1', 'Issuer', object({ selfSigned: { type: 'object' } })],
  [
    'cert-manager.io',
    'v1',
    'Certificate',
    object({
      secretName: text,
      dnsNames: list(text),
      issuerRef: object({ kind: text, name: text, group: text }),
      privateKey: object({
        algorithm: { enum: ['ECDSA', 'RSA', 'Ed25519'], type: 'string' },
        size: { type: 'integer' },
        rotationPolicy: { enum: ['Always', 'Never'], type: 'string' },
      }),
    }),
  ],
];

/** Small CustomResourceDefinitions of the kinds that the chart uses and Kubernetes does not know. */
export const CRDS = KINDS.map(([group, version, kind, spec]) =>
  stringify({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.toLowerCase()}s.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, singular: kind.toLowerCase(), plural: `${kind.toLowerCase()}s` },
      versions: [{ name: version, served: true, storage: true, schema: { openAPIV3Schema: object({ spec }) } }],
    },
  }),
).join('---\n');
