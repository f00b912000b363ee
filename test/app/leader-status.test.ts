import { expect } from 'chai';
import { type LeaderStatus, readStatus, statusData, statusPath } from '../../src/app/leader-status.ts';

const AT = '2026-01-02T00:00:00.000Z';
const POD = {
  ...{ namespace: 'shop', name: 'web', since: '2026-01-01T00:00:00.000Z', gated: true },
  ...{ reason: 'ImageUnresolvable: why', outlook: '' },
};
const status = (more: Partial<LeaderStatus> = {}): LeaderStatus & { at: string } => ({
  ...{ at: AT, writer: 'vm-1', version: '1.2.3', pods: { placed: 4 }, tooLarge: 2 },
  ...{ waiting: { count: 7, oldest: [POD] }, keepsDaemonSets: true, problems: [{ problem: 'p', do: 'd' }] },
  ...more,
});
const read = (text: string) => readStatus({ data: { status: text } });

describe('the status of the leader', () => {
  it('is read as it was written', () => {
    expect(readStatus({ data: statusData(status()) })).to.deep.equal(status());
    expect(statusPath('a/b')).to.equal('/api/v1/namespaces/a%2Fb/configmaps/archaware-controller-status');
  });

  it('leaves out the last problems rather than being too long', () => {
    const problems = Array.from({ length: 60 }, (_, index) => ({ problem: `${index}`, do: 'x'.repeat(1_000) }));
    const { status: text = '' } = statusData(status({ problems }));
    expect(text.length).to.be.within(30_000, 32_768);
    expect(read(text)?.problems[0]?.problem).to.equal('0');
  });

  const rows: readonly (readonly [what: string, text: string, expected: object | undefined])[] = [
    ['nothing', '', undefined],
    ['no JSON', 'x', undefined],
    ['no object', '[]', undefined],
    ['no time', '{"writer":"x"}', undefined],
    ['a time of another form', '{"at":"yesterday"}', undefined],
    ['a text that is too long', JSON.stringify({ at: AT, x: 'x'.repeat(32_768) }), undefined],
    [
      'nothing but a time',
      `{"at":"${AT}"}`,
      { at: AT, writer: '', version: '', pods: {}, tooLarge: 0, waiting: { count: 0, oldest: [] }, problems: [] },
    ],
    [
      'other types',
      JSON.stringify({ at: AT, writer: 1, pods: { a: 'x', b: 2 }, tooLarge: '9', waiting: 7, problems: [1, {}] }),
      { writer: '', pods: { b: 2 }, tooLarge: 0, problems: [{ problem: '', do: '' }] },
    ],
    ['control characters', JSON.stringify({ at: AT, writer: '\u001b[2Jx' }), { writer: '\\u001b[2Jx' }],
  ];
  for (const [what, text, expected] of rows) {
    it(`that somebody else wrote is bounded: ${what}`, () => {
      const found = read(text);
      if (expected === undefined) expect(found).to.equal(undefined);
      else expect(found).to.deep.include(expected);
    });
  }

  it('that somebody else wrote has no long list and no long text', () => {
    const many = <T>(value: T) => Array.from({ length: 500 }, () => value);
    const found = read(JSON.stringify({ at: AT, waiting: { count: 1, oldest: many({}) }, problems: many({}) }));
    expect([found?.waiting.oldest.length, found?.problems.length]).to.deep.equal([5, 20]);
    expect(found?.waiting.oldest[0]?.since).to.equal(AT);
    expect(read(JSON.stringify({ at: AT, writer: 'x'.repeat(10_000) }))?.writer.length).to.be.at.most(300);
  });
});
