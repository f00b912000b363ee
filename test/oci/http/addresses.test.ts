import { isIP } from 'node:net';
import { expect } from 'chai';
import { createAddressJudge, parseCidr } from '../../../src/oci/http/address-guard.ts';
import type { AddressPolicy } from '../../../src/oci/http/trust.ts';

describe('an address', () => {
  const judge = createAddressJudge({});
  const verdicts: [isAllowed: [configured: boolean, registry: boolean, publicOnly: boolean], addresses: string][] = [
    [[true, true, true], '93.184.216.34 2606:4700::1111 64:ff9b::5db8:d822 64:ff9b:1::808:808'],
    [[true, true, false], '10.1.2.3 172.31.0.1 192.168.1.1 100.64.0.1 fd12::1'],
    [[true, false, false], '127.0.0.1 127.255.0.9 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 ::7f00:1'],
    [[true, false, false], '64:ff9b::7f00:1 2002:7f00:1::'],
    [[false, false, false], '0.0.0.0 0.1.2.3 :: 169.254.169.254 169.254.1.1 ::ffff:169.254.169.254 64:ff9b::a9fe:a9fe'],
    [[false, false, false], '2002:a9fe:a9fe:: fe80::1 fe80::1%eth0 224.0.0.1 ff02::1 255.255.255.255 240.0.0.1'],
    [[false, false, false], '100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254 fd00:c1::a9fe:a9fe'],
    [[false, false, false], 'fd00:42::42 64:ff9b:1::a9fe:a9fe ::ffff:0:a9fe:a9fe 2001:0:a9fe:a9fe::1 127.1'],
    [[false, false, false], ''],
  ];
  const rows = verdicts.flatMap(([allowed, all]) => all.split(' ').map((address) => [address, ...allowed] as const));
  const policies: AddressPolicy[] = ['configured', 'registry', 'public'];
  for (const [address, ...expected] of rows) {
    it(`${address || '(none)'} is ${expected.map((yes) => (yes ? 'allowed' : 'refused')).join(', ')}`, () => {
      expect(policies.map((policy) => judge.forbidden(address, policy) === undefined)).to.deep.equal(expected);
    });
  }

  it('counts as public if a public registry may lead there, and if it is not known', () => {
    for (const [address, , , isPublic] of rows) {
      if (isIP(address) !== 0) expect(judge.isPublic(address), address).to.equal(isPublic);
    }
    expect(judge.isPublic('')).to.equal(true);
  });

  it('follows the operator: allow permits, deny wins, metadata stay forbidden, the API server is not asked', () => {
    const addresses = ['10.0.0.1', '10.0.0.2', '9.9.9.9'];
    const own = createAddressJudge({
      allow: ['127.0.0.0/8', '169.254.0.0/16', '10.0.0.1'],
      deny: ['127.0.0.9', '8.8.0.0/16'],
      ownAddresses: () => addresses,
      ownNames: ['Api.Test'],
    });
    expect(own.forbidden('127.0.0.1', 'registry')).to.equal(undefined);
    expect(own.forbidden('127.0.0.9', 'configured')).to.equal('denied');
    expect(own.forbidden('8.8.8.8', 'public')).to.equal('denied');
    expect(own.forbidden('169.254.169.254', 'registry')).to.equal('reserved');
    expect(own.forbidden('10.0.0.1', 'registry')).to.equal(undefined);
    expect(own.forbidden('10.0.0.2', 'registry')).to.equal('own');
    expect(own.forbidden('10.0.0.2', 'configured')).to.equal(undefined);
    expect(own.forbidden('9.9.9.9', 'public')).to.equal('own');
    expect(own.forbidden('9.9.9.8', 'public')).to.equal(undefined);
    addresses.push('::ffff:9.9.9.8', 'fe80::1%eth0');
    expect(own.forbidden('9.9.9.8', 'public')).to.equal('own');
    expect(own.forbiddenHost('api.test', 'registry')).to.equal('own');
    expect(own.forbiddenHost('api.test.', 'public')).to.equal('own');
    expect(own.forbiddenHost('api.test', 'configured')).to.equal(undefined);
    expect(own.forbiddenHost('x.api.test', 'registry')).to.equal(undefined);
  });

  it('of a metadata service stays forbidden if the operator allows its range', () => {
    const allowing = createAddressJudge({ allow: ['0.0.0.0/0', '::/0'] });
    for (const address of ['100.100.100.200', '168.63.129.16', '192.0.0.192', '169.254.169.254', 'fd00:42::42']) {
      for (const policy of policies) expect(allowing.forbidden(address, policy), address).to.equal('reserved');
    }
  });

  for (const text of ['10.0.0.0/33', '10.0.0/8', 'x', '::/129', '10.0.0.0/8/9', '1.2.3.4/', '']) {
    it(`"${text}" is not a CIDR`, () => expect(() => parseCidr(text)).to.throw(/is not a CIDR/));
  }
});
