import { expect } from 'chai';
import { type Change, changesOf, sectionOf } from '../../hack/release/changelog.ts';

const CHANGELOG = `# Changelog

For users.

## Unreleased

- Later.

## 0.3.0 (2026-12-24)

Words first.

### In short

- **New:** [one](docs/a.md) \`thing\`
  on two lines.

  And more about it.
- Another.

### Security

- Safer.

## 0.2.0 (2026-11-23)

- Earlier.

[0.3.0]: https://source.invalid/archaware-controller
`;

describe('a section of the changelog', () => {
  it('ends where the next one begins', () => {
    const { date, text } = sectionOf(CHANGELOG, '0.3.0') ?? {};
    expect({ date, text: text?.split('\n')[0] }).to.deep.equal({ date: '2026-12-24', text: 'Words first.' });
    expect(text).to.match(/- Safer\.$/);
  });

  it('ends before the definitions of links', () => expect(sectionOf(CHANGELOG, '0.2.0')?.text).to.equal('- Earlier.'));

  it('has parts, with their bullets on one line each', () => {
    const parts = sectionOf(CHANGELOG, '0.3.0')?.parts.map(({ title, bullets }) => [title, bullets]);
    expect(parts).to.deep.equal([
      [undefined, []],
      ['In short', ['**New:** [one](docs/a.md) `thing` on two lines.', 'Another.']],
      ['Security', ['Safer.']],
    ]);
  });

  it('may be the one of what is not released', () => {
    expect(sectionOf(CHANGELOG, 'Unreleased')).to.include({ date: undefined, text: '- Later.' });
  });

  for (const version of ['0.3', '3.0', '0.2', 'unreleased']) {
    it(`is not found for ${version}`, () => expect(sectionOf(CHANGELOG, version)).to.equal(undefined));
  }
});

describe('the few changes of a section', () => {
  const rows: readonly [are: string, text: string, changes: readonly Change[]][] = [
    [
      'are the highlights, each with the kind that its first word says',
      '### In short\n\n- **New:** a [page](b.md).\n- Fixed `x`.\n- Removed y.\n- Deprecated z.\n- Security: q.\n- It is faster.\n\n### Other\n\n- **Bold.**',
      [
        { kind: 'added', description: 'New: a page.' },
        { kind: 'fixed', description: 'Fixed x.' },
        { kind: 'removed', description: 'Removed y.' },
        { kind: 'deprecated', description: 'Deprecated z.' },
        { kind: 'security', description: 'Security: q.' },
        { kind: 'changed', description: 'It is faster.' },
      ],
    ],
    [
      'without highlights are the first sentences of the bullets in bold letters, but no steps of an update',
      '### Before you update\n\n- **Do this.**\n\n### Security\n\n- **Safer than 1.2.3:** really. More.\n- Not bold.\n\n### Commands\n\n- **New: `x`** is here. More.',
      [
        { kind: 'security', description: 'Safer than 1.2.3.' },
        { kind: 'added', description: 'New.' },
      ],
    ],
    ['may be none', '- Something.', []],
  ];
  for (const [are, text, changes] of rows) {
    it(are, () => {
      const section = sectionOf(`## 1.0.0\n\n${text}\n`, '1.0.0');
      expect(section && changesOf(section)).to.deep.equal(changes);
    });
  }
});
