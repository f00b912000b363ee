import type { Prices } from '../../src/analysis/readiness/price.ts';
import type { Report } from '../../src/analysis/readiness/report.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { container, object, report } from '../analysis/readiness/world.ts';
import { failed, known } from '../placement/objects.ts';

const [AMD64, BOTH, ALL] = ['linux/amd64', 'linux/amd64,linux/arm64', 'linux/amd64,linux/arm64,linux/s390x'];

type Fleet = {
  /** The platforms of images; an image that is not here could not be looked up. */
  readonly platforms: ReadonlyMap<string, string>;
  readonly objects: readonly JsonObject[];
  readonly targets?: readonly string[];
};

/** Of a core and a gibibyte for an hour. */
const PRICES: Prices = {
  byArchitecture: new Map([
    ['amd64', { cpu: 0.0408, memory: 0.0045 }],
    ['arm64', { cpu: 0.0321, memory: 0.0036 }],
  ]),
};

function reportOf({ platforms, objects, targets = ['arm64'] }: Fleet): Report {
  return report({
    objects,
    targets,
    prices: PRICES,
    namesOf: (image) => [image],
    answerOf: ({ image }) => {
      const found = platforms.get(image);
      return found === undefined ? failed(Number.POSITIVE_INFINITY) : known(found);
    },
  });
}

const PLATFORMS: Readonly<Record<string, string>> = {
  'nginx:1.29': ALL,
  'redis:8': ALL,
  'postgres:18': ALL,
  'registry.example.com/shop/cart:4.2': BOTH,
  'registry.example.com/shop/checkout:2.8': BOTH,
  'registry.example.com/shop/legacy:1.9': AMD64,
  'registry.example.com/shop/search:7.1': BOTH,
  'registry.example.com/pay/ledger:3.3': AMD64,
  'registry.example.com/pay/fraud:12': AMD64,
  'registry.example.com/pay/gateway:5': BOTH,
  'registry.example.com/data/etl:0.44': AMD64,
  'registry.example.com/data/notebook:6': BOTH,
  'registry.example.com/ops/agent:3': AMD64,
  'registry.example.com/ops/logs:2.2': BOTH,
  'registry.example.com/media/thumbs:1.4': AMD64,
  'registry.example.com/media/upload:9': BOTH,
};

/** Kind, namespace, name, images, replicas, and what the pod asks of its node. */
type Line = readonly [string, string, string, readonly string[], number, JsonObject?];

const SSD = { nodeSelector: { disktype: 'ssd' } };

const LINES: readonly Line[] = [
  ['Deployment', 'shop', 'web', ['nginx:1.29'], 6],
  ['Deployment', 'shop', 'cart', ['registry.example.com/shop/cart:4.2', 'redis:8'], 5],
  ['Deployment', 'shop', 'checkout', ['registry.example.com/shop/checkout:2.8'], 4],
  ['Deployment', 'shop', 'legacy', ['registry.example.com/shop/legacy:1.9', 'nginx:1.29'], 4],
  ['Deployment', 'shop', 'search', ['registry.example.com/shop/search:7.1'], 3],
  ['StatefulSet', 'shop', 'orders-db', ['postgres:18'], 2, SSD],
  ['Deployment', 'pay', 'gateway', ['registry.example.com/pay/gateway:5'], 4],
  ['Deployment', 'pay', 'ledger', ['registry.example.com/pay/ledger:3.3'], 6],
  ['Deployment', 'pay', 'fraud', ['registry.example.com/pay/fraud:12', 'registry.example.com/pay/ledger:3.3'], 2],
  ['StatefulSet', 'pay', 'ledger-db', ['postgres:18'], 3],
  ['CronJob', 'data', 'nightly-etl', ['registry.example.com/data/etl:0.44'], 1],
  ['Deployment', 'data', 'notebooks', ['registry.example.com/data/notebook:6'], 3],
  ['Job', 'data', 'backfill', ['registry.example.com/data/etl:0.44'], 1],
  ['Pod', 'data', 'debug', ['registry.example.com/private/debug:1'], 1],
  ['DaemonSet', 'ops', 'agent', ['registry.example.com/ops/agent:3'], 1],
  ['DaemonSet', 'ops', 'logs', ['registry.example.com/ops/logs:2.2'], 1],
  ['Deployment', 'media', 'thumbs', ['registry.example.com/media/thumbs:1.4'], 2],
  ['Deployment', 'media', 'upload', ['registry.example.com/media/upload:9'], 3],
];

function objectOf([kind, namespace, name, images, replicas, pod = {}]: Line): JsonObject {
  const containers = images.map((image, at) => ({ ...container(image), name: at === 0 ? 'app' : `sidecar-${at}` }));
  return object({ kind, namespace, name, pod: { containers, ...pod }, spec: { replicas } });
}

/** What a company might have: some workloads in every state. */
export function fleetReport(targets: readonly string[] = ['arm64']): Report {
  return reportOf({ platforms: new Map(Object.entries(PLATFORMS)), objects: LINES.map(objectOf), targets });
}

/** 2,000 images and 2,500 workloads in 80 namespaces: every third image lacks arm64. */
export function largeReport(): Report {
  const images = Array.from(
    { length: 2_000 },
    (_, at) => `registry.example.com/team-${at % 40}/service-${at}:1.${at % 7}`,
  );
  const objects = Array.from({ length: 2_500 }, (_, at) => {
    const used = [images[at % images.length] ?? '', ...(at % 4 === 0 ? [images[(at * 7) % images.length] ?? ''] : [])];
    return objectOf(['Deployment', `namespace-${at % 80}`, `workload-${at}`, used, 1 + (at % 9)]);
  });
  return reportOf({ platforms: new Map(images.map((image, at) => [image, at % 3 === 0 ? AMD64 : BOTH])), objects });
}

/** Names that a page, a script or a spreadsheet could take for more than text. */
export const HOSTILE_NAMES: readonly string[] = [
  '</script><script>window.broken = 1</script>',
  '"><img src=x onerror="window.broken = 1">',
  "' onmouseover='window.broken = 1",
  '<svg/onload=window.broken=1>',
  '&lt;b&gt;',
  '=HYPERLINK("http://example.com","click")',
  '+1+1',
  '-2+3',
  '@SUM(1,1)',
  '\t=1+1',
  'line\nbreak',
  'right\u202eto left',
  'comma, "quote"; semicolon',
  '{{1+1}}',
  'null\u0000byte',
  '\ud800half',
  '\u{E0041}tag',
  '＝1+1',
  '--></style><b>',
];

/** A report in which everything that comes from outside is hostile. */
export function hostileReport(): Report {
  return reportOf({
    platforms: new Map(HOSTILE_NAMES.map((name, at) => [name, at % 2 === 0 ? AMD64 : BOTH])),
    objects: HOSTILE_NAMES.map((name, at) =>
      objectOf(['Deployment', name, name, at % 5 === 0 ? [name, `gone ${name}`] : [name], 1]),
    ),
  });
}
