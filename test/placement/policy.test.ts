import { expect } from 'chai';
import { parseSelector } from '../../src/kit/label-syntax.ts';
import { settingsFor } from '../../src/placement/eligibility.ts';
import type { Policy } from '../../src/placement/settings.ts';
import { settings } from './objects.ts';

type Given = { namespaces?: readonly string[]; namespaceSelector?: string; podSelector?: string };

function policy(name: string, { namespaces, namespaceSelector = '', podSelector = '' }: Given = {}): Policy {
  return {
    name,
    namespaces,
    namespaceSelector: parseSelector(namespaceSelector),
    podSelector: parseSelector(podSelector),
    settings: settings({ policy: name }),
  };
}

describe('the policy of a pod', () => {
  const subject = { namespace: { name: 'team-a', labels: { tier: 'gold' } }, labels: { app: 'web' } };
  const rows: [policies: readonly Policy[], expected: string | undefined][] = [
    [[], undefined],
    [[policy('all')], 'all'],
    [[policy('glob', { namespaces: ['x', 'team-*'] })], 'glob'],
    [[policy('other', { namespaces: ['team-b', 'team'] })], undefined],
    [[policy('namespace', { namespaceSelector: 'tier in (gold,silver)' })], 'namespace'],
    [[policy('namespace', { namespaceSelector: 'tier=silver' })], undefined],
    [[policy('not-its-label', { namespaceSelector: 'app=web' })], undefined],
    [[policy('pod', { podSelector: 'app=web' })], 'pod'],
    [[policy('pod', { podSelector: 'app!=web' })], undefined],
    [
      [policy('every-part', { namespaces: ['team-a'], namespaceSelector: 'tier', podSelector: 'app=web' })],
      'every-part',
    ],
    [[policy('not-the-name', { namespaces: ['b'], namespaceSelector: 'tier', podSelector: 'app' })], undefined],
    [
      [policy('not-the-namespace', { namespaces: ['team-a'], namespaceSelector: '!tier', podSelector: 'app' })],
      undefined,
    ],
    [[policy('not-the-pod', { namespaces: ['team-a'], namespaceSelector: 'tier', podSelector: '!app' })], undefined],
    [[policy('first'), policy('second')], 'first'],
    [[policy('first', { namespaces: ['b'] }), policy('second', { podSelector: 'app' }), policy('third')], 'second'],
  ];
  for (const [policies, expected] of rows) {
    it(`is ${expected ?? 'none'} of ${policies.map(({ name }) => name).join(', ') || 'none'}`, () => {
      const global = settings({ policies });
      const found = settingsFor(global, subject);
      expect(found.policy).to.equal(expected);
      // The object is created once, because remembered decisions compare it by identity.
      expect(found).to.equal(policies.find(({ name }) => name === expected)?.settings ?? global);
    });
  }
});
