/**
 * What our account may write to the configuration of its webhook, and what it must not. Nothing is ever stored. The first webhook is
 * called by a URL, the second one by a Service.
 */
import { type Attempt, add, remove, replace } from './account.ts';

export const WEBHOOK = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';
/** No certificate, and therefore empty: the API server refuses what it cannot read before any policy does. */
const bundle = add('/webhooks/0/clientConfig/caBundle', '');
/** How the webhooks are called, before anything is tried. */
export const WEBHOOK_CLIENTS = [
  replace('/webhooks/0/clientConfig', { url: 'https://127.0.0.1:9443' }),
  replace('/webhooks/1/clientConfig', { service: { namespace: 'archaware', name: 'archaware-controller', port: 443 } }),
];
const client = '/webhooks/0/clientConfig';
const service = '/webhooks/1/clientConfig/service';

export const WEBHOOK_ALLOWED: readonly Attempt[] = [
  ['say whom to trust', WEBHOOK, [bundle]],
  ['say by which path to call a URL', WEBHOOK, [replace(`${client}/url`, 'https://127.0.0.1:9443/mutate/abc')]],
  ['say by which path to call a Service', WEBHOOK, [add(`${service}/path`, '/mutate/abc')]],
  [
    'say both at once, of each webhook',
    WEBHOOK,
    [bundle, replace(`${client}/url`, 'https://127.0.0.1:9443/mutate/abc'), add(`${service}/path`, '/mutate/abc')],
  ],
];

export const WEBHOOK_REFUSED: readonly Attempt[] = [
  ['send reviews elsewhere', WEBHOOK, [replace(`${client}/url`, 'https://evil.example.com/')]],
  ['send reviews to another port', WEBHOOK, [replace(`${client}/url`, 'https://127.0.0.1:9444/mutate')]],
  [
    'send reviews to a host that begins alike',
    WEBHOOK,
    [replace(`${client}/url`, 'https://127.0.0.1.evil.example.com:9443/mutate')],
  ],
  ['send reviews to another Service', WEBHOOK, [replace(`${service}/name`, 'evil')]],
  ['send reviews to a Service elsewhere', WEBHOOK, [replace(`${service}/namespace`, 'evil')]],
  ['send reviews to another port of the Service', WEBHOOK, [add(`${service}/port`, 9444)]],
  [
    'send reviews to a Service that had a URL',
    WEBHOOK,
    [remove(`${client}/url`), add(`${client}/service`, { namespace: 'evil', name: 'evil', path: '/mutate' })],
  ],
  [
    'send reviews to a URL that had a Service',
    WEBHOOK,
    [remove('/webhooks/1/clientConfig/service'), add('/webhooks/1/clientConfig/url', 'https://127.0.0.1:9443/mutate')],
  ],
  ['be asked about more', WEBHOOK, [replace('/webhooks/0/rules/0/resources', ['*'])]],
  ['be asked about updates', WEBHOOK, [add('/webhooks/0/rules/0/operations/-', 'UPDATE')]],
  ['be asked about our own namespace', WEBHOOK, [remove('/webhooks/0/matchConditions')]],
  ['have pods refused when it is down', WEBHOOK, [replace('/webhooks/0/failurePolicy', 'Fail')]],
  ['be waited for longer', WEBHOOK, [replace('/webhooks/0/timeoutSeconds', 30)]],
  ['remove a webhook', WEBHOOK, [remove('/webhooks/0')]],
  ['set an annotation', WEBHOOK, [add('/metadata/annotations/evil', 'yes')]],
  ['set a label', WEBHOOK, [add('/metadata/labels/evil', 'yes')]],
  ['change the path and more', WEBHOOK, [add(`${service}/path`, '/mutate/abc'), replace(`${service}/name`, 'evil')]],
];
