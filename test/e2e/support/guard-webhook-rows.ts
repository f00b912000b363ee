/**
 * What our account may write to the configuration of its webhook, and what it must not. Nothing is ever stored. The first webhook is
 * called by a URL, the second one by a Service.
 */
import { WEBHOOKS } from '../../support/webhook.ts';
import { type Attempt, add, on, remove, replace } from './account.ts';

/** No certificate, and therefore empty: the API server refuses what it cannot read before any policy does. */
const bundle = add('/webhooks/0/clientConfig/caBundle', '');
/** How the webhooks are called, before anything is tried. */
export const WEBHOOK_CLIENTS = [
  replace('/webhooks/0/clientConfig', { url: 'https://127.0.0.1:9443' }),
  replace('/webhooks/1/clientConfig', { service: { namespace: 'archaware', name: 'archaware-controller', port: 443 } }),
];
const client = '/webhooks/0/clientConfig';
const service = '/webhooks/1/clientConfig/service';

export const WEBHOOK_ALLOWED: readonly Attempt[] = on(
  WEBHOOKS,
  ['say whom to trust', bundle],
  ['say by which path to call a URL', replace(`${client}/url`, 'https://127.0.0.1:9443/mutate/abc')],
  ['say by which path to call a Service', add(`${service}/path`, '/mutate/abc')],
  [
    'say both at once, of each webhook',
    bundle,
    replace(`${client}/url`, 'https://127.0.0.1:9443/mutate/abc'),
    add(`${service}/path`, '/mutate/abc'),
  ],
);

export const WEBHOOK_REFUSED: readonly Attempt[] = on(
  WEBHOOKS,
  ['send reviews elsewhere', replace(`${client}/url`, 'https://evil.example.com/')],
  ['send reviews to another port', replace(`${client}/url`, 'https://127.0.0.1:9444/mutate')],
  [
    'send reviews to a host that begins alike',
    replace(`${client}/url`, 'https://127.0.0.1.evil.example.com:9443/mutate'),
  ],
  ['send reviews to another Service', replace(`${service}/name`, 'evil')],
  ['send reviews to a Service elsewhere', replace(`${service}/namespace`, 'evil')],
  ['send reviews to another port of the Service', add(`${service}/port`, 9444)],
  [
    'send reviews to a Service that had a URL',
    remove(`${client}/url`),
    add(`${client}/service`, { namespace: 'evil', name: 'evil', path: '/mutate' }),
  ],
  [
    'send reviews to a URL that had a Service',
    remove('/webhooks/1/clientConfig/service'),
    add('/webhooks/1/clientConfig/url', 'https://127.0.0.1:9443/mutate'),
  ],
  ['be asked about more', replace('/webhooks/0/rules/0/resources', ['*'])],
  ['be asked about updates', add('/webhooks/0/rules/0/operations/-', 'UPDATE')],
  ['be asked about our own namespace', remove('/webhooks/0/matchConditions')],
  ['have pods refused when it is down', replace('/webhooks/0/failurePolicy', 'Fail')],
  ['be waited for longer', replace('/webhooks/0/timeoutSeconds', 30)],
  ['remove a webhook', remove('/webhooks/0')],
  ['set an annotation', add('/metadata/annotations/evil', 'yes')],
  ['set a label', add('/metadata/labels/evil', 'yes')],
  ['change the path and more', add(`${service}/path`, '/mutate/abc'), replace(`${service}/name`, 'evil')],
);
