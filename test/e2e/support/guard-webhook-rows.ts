/** What our account may write to the configuration of its webhook, and what it must not. Nothing is ever stored. */
import { type Attempt, add, remove, replace } from './account.ts';

const PATH = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/archaware-controller';
/** No certificate, and therefore empty: the API server refuses what it cannot read before any policy does. */
const bundle = add('/webhooks/0/clientConfig/caBundle', '');

export const WEBHOOK_ALLOWED: readonly Attempt[] = [['say whom to trust', PATH, [bundle]]];

export const WEBHOOK_REFUSED: readonly Attempt[] = [
  ['send reviews elsewhere', PATH, [replace('/webhooks/0/clientConfig/url', 'https://evil.example.com/')]],
  ['be asked about more', PATH, [replace('/webhooks/0/rules/0/resources', ['*'])]],
  ['be asked about updates', PATH, [add('/webhooks/0/rules/0/operations/-', 'UPDATE')]],
  ['be asked about our own namespace', PATH, [remove('/webhooks/0/matchConditions')]],
  ['have pods refused when it is down', PATH, [replace('/webhooks/0/failurePolicy', 'Fail')]],
  ['be waited for longer', PATH, [replace('/webhooks/0/timeoutSeconds', 30)]],
  ['remove a webhook', PATH, [remove('/webhooks/0')]],
  ['set an annotation', PATH, [add('/metadata/annotations/evil', 'yes')]],
  ['set a label', PATH, [add('/metadata/labels/evil', 'yes')]],
];
