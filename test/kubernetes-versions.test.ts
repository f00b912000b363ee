import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { foundIn, MENTIONS, moved } from '../hack/cluster/versions/mentions.ts';
import { goModFor, readUpstream, stagingVersion } from '../hack/cluster/versions/module.ts';
import { planMove } from '../hack/cluster/versions/move.ts';
import { computedEnd, newerThan, newestPatch, prereleases } from '../hack/cluster/versions/newer.ts';
import { PAGE, withSupportTable } from '../hack/cluster/versions/table.ts';
import {
  byNewest,
  formatRecord,
  moduleFolder,
  parseRecord,
  pinnedIn,
  RECORD,
  readVersions,
  triedOf,
  type Versions,
} from '../hack/cluster/versions/versions.ts';

const ROOT = new URL('../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8');

describe('the versions of Kubernetes', () => {
  const versions = readVersions(ROOT);
  const tried = triedOf(versions);

  it('stand in the table of docs/support.md as in versions.json and in the modules', () => {
    expect(read(PAGE), 'npm run generate:versions').to.equal(withSupportTable(read(PAGE), versions));
  });

  for (const { file, text } of MENTIONS) {
    it(`are in ${file}: ${text(tried)}`, () => {
      expect(foundIn(read(file), text(tried)), `${file} has no "${text(tried)}"`).not.to.equal(undefined);
    });
  }

  it('have a module where the tests run on them, and every module has a version', () => {
    const folders = readdirSync(new URL('hack/cluster/tools', ROOT)).filter((name) => name.startsWith('kubernetes-'));
    expect(folders).to.have.members(tried.older.map(({ minor }) => `kubernetes-${minor}`));
    for (const { minor, patch } of [tried.main, ...tried.older]) expect(patch).to.match(new RegExp(`^${minor}[.]`));
  });

  it('have no gap, and the oldest one is the oldest that archaware accepts', () => {
    const minors = versions.minors.map(({ minor }) => Number(minor.split('.')[1]));
    const [newest = 0] = minors;
    expect(minors).to.deep.equal(minors.map((_, index) => newest - index));
    const [, least] = /LEAST_MINOR = (\d+);/.exec(read('src/app/connect.ts')) ?? [];
    expect(versions.minors.at(-1)?.minor).to.equal(`1.${least}`);
    expect(versions.minors.at(-1)?.patch, 'the tests run on the oldest one').to.be.a('string');
    expect(versions.minors[1]?.patch, 'the tests run on the one before the main line').to.be.a('string');
  });

  for (const { minor, patch } of [tried.main, ...tried.older]) {
    it(`have every staging module of ${patch} at its version`, () => {
      const goMod = read(`${moduleFolder(minor, minor === tried.main.minor)}/go.mod`);
      const replaced = [...goMod.matchAll(/^\t(\S+) => (\S+) v(\S+)$/gm)];
      expect(replaced).to.have.length.above(20);
      for (const [, from, to, version] of replaced) expect([to, version]).to.deep.equal([from, stagingVersion(patch)]);
    });
  }

  it('are recorded as the formatter of the script writes them', () => {
    expect(formatRecord(parseRecord(read(RECORD)))).to.equal(read(RECORD));
  });
});

const main = { minor: '1.37', patch: '1.37.2' };
const older = [
  { minor: '1.36', patch: '1.36.3' },
  { minor: '1.30', patch: '1.30.14' },
];

describe('hack/cluster/move-kubernetes.sh', () => {
  for (const [published, expected] of [
    [['1.37.2', '1.36.3', '1.30.14'], []],
    [['1.37.3', '1.37.10', '1.37.9'], ['1.37.2 to 1.37.10, patch']],
    [['1.38.0-rc.1', '1.37.3-rc.0'], []],
    [
      ['1.36.4', '1.38.0', '1.38.1', '1.37.3'],
      ['1.37.2 to 1.38.1, minor', '1.37.2 to 1.37.3, patch', '1.36.3 to 1.36.4, patch'],
    ],
    [['1.39.0', '1.35.9'], []],
    [[], []],
  ] satisfies [string[], string[]][]) {
    it(`finds ${expected.join(' and ') || 'nothing newer'} among ${published.join(', ') || 'no version'}`, () => {
      const found = newerThan(published, main, older).map(
        ({ from, version, kind }) => `${from} to ${version}, ${kind}`,
      );
      expect(found).to.deep.equal(expected);
    });
  }

  it('names pre-releases of the next minor alone', () => {
    expect(prereleases(['1.38.0-rc.1', '1.38.0', '1.37.3-rc.0', '1.39.0-alpha.1'], main)).to.deep.equal([
      '1.38.0-rc.1',
    ]);
    expect(newestPatch(['1.38.0-rc.1'], '1.38')).to.equal(undefined);
  });

  for (const [released, end] of [
    ['2026-08-26T10:44:20Z', '2027-10-28'],
    ['2026-04-22', '2027-06-28'],
    ['2025-12-17', '2027-02-28'],
    ['2024-10-31', '2025-12-28'],
  ] as const) {
    it(`computes ${end} as the end of what was released on ${released}`, () => {
      expect(computedEnd(released)).to.equal(end);
    });
  }

  it('orders versions by their numbers, not by their letters', () => {
    expect(['1.9.0', '1.30.2', '1.30.14', '1.37'].sort(byNewest)).to.deep.equal(['1.37', '1.30.14', '1.30.2', '1.9.0']);
  });
});

describe('a move to another Kubernetes', () => {
  const versions: Versions = {
    read: '2026-01-01',
    minors: [
      { minor: '1.37', end: '2027-10-28', patch: '1.37.2' },
      { minor: '1.36', end: '2027-06-28', patch: '1.36.3' },
      { minor: '1.35', end: '2027-02-28' },
    ],
  };
  const plan = (version: string, ...drop: string[]) =>
    planMove(versions, { version, drop }, '2026-12-16', '2026-12-20');

  it('makes the next minor the main line, and the old one an older one', () => {
    const { record, write, remove } = plan('1.38.0');
    expect(record.read).to.equal('2026-12-20');
    expect(record.minors[0]).to.deep.equal({ minor: '1.38', end: '2028-02-28', computed: true });
    expect(record.minors[1]).to.deep.equal({ minor: '1.37', end: '2027-10-28' });
    expect(write).to.deep.equal([
      { minor: '1.38', version: '1.38.0', isMain: true },
      { minor: '1.37', version: '1.37.2', isMain: false },
    ]);
    expect(remove).to.deep.equal([]);
  });

  it('takes pre-releases', () => {
    expect(plan('1.38.0-rc.1').write[0]).to.deep.equal({ minor: '1.38', version: '1.38.0-rc.1', isMain: true });
  });

  it('drops older minors, and the old main line, if told to', () => {
    expect(plan('1.38.0', '1.36').remove).to.deep.equal(['1.36']);
    expect(plan('1.38.0', '1.37').write.map(({ minor }) => minor)).to.deep.equal(['1.38']);
  });

  it('changes a patch version alone', () => {
    expect(plan('1.37.3')).to.deep.include({ write: [{ minor: '1.37', version: '1.37.3', isMain: true }], remove: [] });
    expect(plan('1.36.4').write).to.deep.equal([{ minor: '1.36', version: '1.36.4', isMain: false }]);
    expect(plan('1.36.4').record.read).to.equal('2026-01-01');
  });

  for (const [version, drop, message] of [
    ['1.37.2', [], 'the tests run on Kubernetes 1.37.2 already'],
    ['1.35.1', [], 'the tests do not run on Kubernetes 1.35'],
    ['1.34.1', [], 'Kubernetes 1.34 is older than the oldest that is supported'],
    ['1.39.0', [], 'Kubernetes 1.39 is not the minor after 1.37'],
    ['1.38.0', ['1.35'], '--drop 1.35: the tests run on no older Kubernetes 1.35'],
    ['1.36.4', ['1.36'], '--drop 1.36'],
    ['1.37.3', ['1.37'], '--drop 1.37: it stays the main line'],
  ] satisfies [string, string[], string][]) {
    it(`to ${version}${drop.map((minor) => ` without ${minor}`).join('')} is refused: ${message}`, () => {
      expect(() => plan(version, ...drop)).to.throw(message);
    });
  }
});

describe('the module of a control plane', () => {
  const goMod = `module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require k8s.io/api v0.0.0

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
\tk8s.io/kubelet => ./staging/src/k8s.io/kubelet
)
`;

  it('takes from the go.mod of Kubernetes what must agree', () => {
    const staging = ['k8s.io/api', 'k8s.io/kubelet'];
    expect(readUpstream(goMod)).to.deep.equal({ go: '1.26.0', godebug: 'godebug default=go1.26', staging });
    expect(() => readUpstream('module x\n')).to.throw('no Go version');
    expect(() => readUpstream('go 1.26\n')).to.throw('staging');
  });

  it('pins Kubernetes and each staging module', () => {
    const text = goModFor('hack/cluster/tools/kubernetes', '1.38.0-rc.1', readUpstream(goMod), true);
    expect(pinnedIn(text)).to.equal('1.38.0-rc.1');
    expect(text).to.include('\tk8s.io/kubelet => k8s.io/kubelet v0.38.0-rc.1\n');
    expect(text).to.include('\tgo.etcd.io/etcd/server/v3\n');
    const old = goModFor(
      'hack/cluster/tools/kubernetes-1.30',
      '1.30.14',
      { ...readUpstream(goMod), go: '1.22.0' },
      false,
    );
    expect(old).to.include('\ngo 1.24.0\n');
    expect(old).not.to.include('etcd/server');
  });
});

describe('a text that names versions', () => {
  it('is found over a line break, which stays', () => {
    expect(moved('x', 'all on\n  1.37 and 1.36, yes', 'on 1.37 and 1.36,', 'on 1.38, 1.37 and 1.36,')).to.equal(
      'all on\n  1.38, 1.37 and 1.36, yes',
    );
  });

  it('that is not there is an error', () => {
    expect(() => moved('README.md', 'text', '1.37', '1.38')).to.throw('README.md does not say "1.37"');
  });

  it('stands for the characters of a pattern', () => {
    expect(foundIn('x (1.37)', '(1.37)')).to.deep.equal({ index: 2, found: '(1.37)' });
    expect(foundIn('x (1037)', '(1.37)')).to.equal(undefined);
  });
});

describe('the record of versions', () => {
  for (const [text, message] of [
    ['{"read": "today", "minors": []}', 'expected a day'],
    ['{"read": "2026-01-01", "minors": [{"minor": "37", "end": "2027-01-01"}]}', 'expected a minor version'],
    [
      '{"read": "2026-01-01", "minors": [{"minor": "1.9", "end": "2027-01-01"}, {"minor": "1.30", "end": "2027-01-01"}]}',
      'the newest minor is not the first',
    ],
  ] as const) {
    it(`that is wrong is refused: ${message}`, () => {
      expect(() => parseRecord(text)).to.throw(message);
    });
  }
});
