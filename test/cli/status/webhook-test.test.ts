import { expect } from 'chai';
import { namespaceToTest, reviewsPods } from '../../../src/cli/status/webhook.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { policyOf, settings } from '../../placement/objects.ts';

const IGNORED = { 'archaware.dev/ignore': 'true' };
const EXCLUDING = [policyOf('p', { excludeNamespaces: ['*'] }, { namespaces: ['default'] })];
const named = (...names: readonly string[]) => names.map((name) => ({ name, labels: {} }));

describe('the namespace in which status tests the webhook', () => {
  const rows: readonly (readonly [
    what: string,
    namespaces: readonly { name: string; labels: Readonly<Record<string, string>> }[],
    expected: string | undefined,
    settings?: Partial<Settings>,
  ])[] = [
    ['is default', named('archaware', 'apps', 'default', 'kube-system'), 'default'],
    [
      'is the first other one without default',
      named('default', 'shop', 'apps'),
      'apps',
      { excludeNamespaces: ['default'] },
    ],
    ['is so where default is ignored', [{ name: 'default', labels: IGNORED }, ...named('shop')], 'shop'],
    ['is the first other one where there is no default', named('shop', 'archaware'), 'shop'],
    ['is never ours, nor one of the system', named('archaware', 'kube-system', 'kube-public'), undefined],
    ['is not one that a policy excludes', named('default', 'shop'), 'shop', { policies: EXCLUDING }],
  ];
  for (const [what, namespaces, expected, given] of rows)
    it(what, () => expect(namespaceToTest(namespaces, 'archaware', settings(given))).to.equal(expected));
});

describe('the configuration of the webhook', () => {
  const hook = (...resources: readonly string[]) => ({ rules: [{ resources }] });
  const rows: readonly (readonly [what: string, webhooks: readonly object[], expected: boolean])[] = [
    ['for pods and DaemonSets', [hook('pods'), hook('daemonsets')], true],
    ['for DaemonSets only', [hook('daemonsets')], false],
    ['for nothing', [], false],
  ];
  for (const [what, webhooks, expected] of rows)
    it(`${what} ${expected ? 'lets' : 'does not let'} a dry run of a pod test it`, () =>
      expect(reviewsPods({ webhooks })).to.equal(expected));
});
