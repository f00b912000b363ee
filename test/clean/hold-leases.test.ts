import { expect } from 'chai';
import type { OwnControllers } from '../../src/clean/controllers.ts';
import { leasesToHold } from '../../src/clean/hold-leases.ts';

describe('the Leases that clean holds', () => {
  const deployment = (namespace: string) => ({ namespace, name: 'archaware-controller', wanted: 0 });
  const lease = (namespace: string, name: string) => ({
    namespace,
    name,
    holder: '',
    renewed: '',
    renewedAt: 0,
    durationMs: 0,
  });
  const rows: [what: string, found: Pick<OwnControllers, 'deployments' | 'leases'>, stated: boolean, places: string][] =
    [
      ['the configured one where nothing is found', { deployments: [], leases: [] }, false, 'archaware/lease'],
      [
        'the one that is there, once',
        { deployments: [deployment('archaware')], leases: [lease('archaware', 'lease')] },
        false,
        'archaware/lease',
      ],
      [
        'the one of another namespace in place of the default',
        { deployments: [deployment('tools')], leases: [] },
        false,
        'tools/lease',
      ],
      [
        'the stated one as well',
        { deployments: [deployment('tools')], leases: [lease('tools', 'other')] },
        true,
        'archaware/lease tools/other tools/lease',
      ],
    ];
  for (const [what, found, stated, places] of rows) {
    it(`are ${what}`, () => {
      const held = leasesToHold(found, { namespace: 'archaware', name: 'lease', stated });
      expect(held.map(({ namespace, name }) => `${namespace}/${name}`).join(' ')).to.equal(places);
    });
  }
});
