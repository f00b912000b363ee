import { expect } from 'chai';
import { parseSamples, readReplicaMetrics } from '../../../src/cli/status/metrics-text.ts';

describe('the metrics of a replica', () => {
  const samples: readonly (readonly [what: string, line: string, expected: object])[] = [
    ['a value', 'a_total 3', { labels: {}, value: 3 }],
    ['labels', 'a_total{x="1",y="two"} 0.5', { labels: { x: '1', y: 'two' }, value: 0.5 }],
    [
      'quotes, backslashes and braces in a label',
      'a_total{x="a\\"b\\\\c}\\nd"} 1',
      { labels: { x: 'a"b\\c}\nd' }, value: 1 },
    ],
    ['infinity', 'a_total +Inf', { labels: {}, value: Number.POSITIVE_INFINITY }],
    ['a time after the value', 'a_total 1 1700000000000', { labels: {}, value: 1 }],
  ];
  for (const [what, line, expected] of samples) {
    it(`are parsed with ${what}`, () => expect(parseSamples(line).get('a_total')).to.deep.equal([expected]));
  }

  it('leave out comments and lines that are no samples', () => {
    expect(parseSamples('# HELP a_total x\n\n<html>\na_total\n').size).to.equal(0);
  });

  it('are those of archaware only if they say who leads', () => {
    expect(readReplicaMetrics('up 1\n')).to.equal(undefined);
    const text = [
      'archaware_leader 1',
      'archaware_build_info{version="1.2.3",node_version="v20"} 1',
      'archaware_pods{outcome="placed"} 7',
      'archaware_config_reload_success 0',
      'archaware_certificate_expiry_seconds Nan',
      'archaware_safety_net_holds{net="other"} 1',
      'archaware_safety_net_holds{net="daemonsets"} 0',
    ];
    expect(readReplicaMetrics(text.join('\n'))).to.deep.equal({
      version: '1.2.3',
      leads: true,
      pods: { placed: 7 },
      configurationInUse: false,
      wrongNodePods: 0,
      contestedObjects: 0,
      keepsDaemonSets: false,
      taintsHeldBack: 0,
      rolloutStopped: 0,
      unresolvableImages: 0,
      certificateExpirySeconds: undefined,
    });
  });

  it('do not say whether DaemonSets are guarded before the replica has tried', () => {
    const read = (value: string) =>
      readReplicaMetrics(`archaware_leader 1\narchaware_safety_net_holds{net="daemonsets"} ${value}`);
    expect(['1', '0', 'Nan'].map((value) => read(value)?.keepsDaemonSets)).to.deep.equal([true, false, undefined]);
  });
});
