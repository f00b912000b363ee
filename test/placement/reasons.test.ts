import { expect } from 'chai';
import type { JsonObject } from '../../src/kit/json.ts';
import { printable } from '../../src/kit/printable.ts';
import { NOTE_BYTES } from '../../src/names.ts';
import {
  heldNote,
  noCommonArchitectureNote,
  openNote,
  readStartsAtLatest,
  staleUnder,
  startsAtLatestText,
  unresolvableNote,
} from '../../src/placement/reasons.ts';
import { decideCase, failed, input, known, toleration } from './objects.ts';

describe('text from outside the program', () => {
  const rows: [given: string, text: string, expected: string][] = [
    ['is left as it is', 'nginx:1.27 – größer ✓ 日本 😀', 'nginx:1.27 – größer ✓ 日本 😀'],
    ['may be empty', '', ''],
    ['loses line ends', 'a\r\nb', 'a\\u000d\\u000ab'],
    ['loses escapes of a terminal', '\u001b[31mred\u009b', '\\u001b[31mred\\u009b'],
    ['loses zero and delete', '\u0000\u007f', '\\u0000\\u007f'],
    ['loses what turns its direction', '\u202eevil\u2066x\u200f', '\\u202eevil\\u2066x\\u200f'],
    ['loses what cannot be seen', 'a\u200bb\ufeffc\u00ad', 'a\\u200bb\\ufeffc\\u00ad'],
    ['loses separators of lines and paragraphs', '\u2028\u2029', '\\u2028\\u2029'],
    ['loses half a character', 'a\ud800b\udc00', 'a\\ud800b\\udc00'],
    ['loses tags beyond the first plane', '\u{e0041}', '\\ue0041'],
  ];
  for (const [given, text, expected] of rows) it(given, () => expect(printable(text, 1_000)).to.equal(expected));

  const cut: [text: string, max: number, expected: string][] = [
    ['abcdef', 6, 'abcdef'],
    ['abcdefg', 6, 'abc…'],
    ['aäöü', 7, 'aäöü'],
    ['aäöüx', 7, 'aä…'],
    ['aääää', 8, 'aää…'],
    ['日本語', 9, '日本語'],
    ['日本語x', 9, '日本…'],
    ['日本語x', 8, '日…'],
    ['😀😀😀', 12, '😀😀😀'],
    ['😀😀😀', 11, '😀😀…'],
    ['😀😀😀', 10, '😀…'],
    ['😀😀😀', 9, '😀…'],
    ['😀', 3, '…'],
  ];
  for (const [text, max, expected] of cut)
    it(`${text} is ${expected} in ${max} bytes`, () => expect(printable(text, max)).to.equal(expected));

  it('never exceeds its bytes, and is never cut within a character', () => {
    const text = 'aä日😀\u202e\n\ud800'.repeat(50);
    for (let max = 3; max <= 1_200; max++) {
      const shown = printable(text, max);
      expect(Buffer.byteLength(shown)).to.be.at.most(max);
      expect(shown).not.to.match(/[\p{Cc}\p{Cf}\p{Cs}\ufffd]/u);
    }
  });
});

describe('the text for operators', () => {
  it('about images without a common architecture names each with its platforms', () => {
    const images = [
      { image: 'nginx:1.27', platforms: ['linux/amd64', 'linux/arm64'] },
      { image: 'odd', platforms: [] },
    ];
    expect(noCommonArchitectureNote(images, 'linux', [])).to.equal(
      'no architecture for linux is common to all images: nginx:1.27 (linux/amd64, linux/arm64); odd (none)',
    );
    expect(noCommonArchitectureNote(images, 'windows', ['amd64', 's390x'])).to.contain(
      'no architecture for windows is common to all images within architectures.schedulable (amd64, s390x): ',
    );
  });

  it('about a pod that asks for what cannot be says what it asks for, and why not', () => {
    const asked = 'kubernetes.io/arch=s390x by its nodeSelector';
    const images = [{ image: 'app', platforms: ['linux/amd64'] }];
    expect(heldNote({ images, asked }, 'linux', [])).to.equal(
      `requires ${asked}, which its images do not have: app (linux/amd64)`,
    );
    expect(heldNote({ images: [], asked }, 'linux', ['amd64'])).to.equal(
      `requires ${asked}, but architectures.schedulable allows amd64 only`,
    );
  });

  it('about an image that cannot be resolved names image, registry and reason', () => {
    const what = { image: 'r.example.com/a', code: 'denied', message: 'log in first', registry: 'r.example.com' };
    expect(unresolvableNote(what)).to.equal(
      'image r.example.com/a could not be resolved (denied) at r.example.com: log in first',
    );
    expect(unresolvableNote({ ...what, registry: '' })).to.contain('at no registry');
    expect(unresolvableNote({ ...what, volume: 'data' })).to.contain('image r.example.com/a of volume data could not');
  });

  it('about an image that was not asked for says so, and what the registry answered for others', () => {
    const message = 'r.example.com answers 502 for its project proxy';
    const what = { image: 'r.example.com/proxy/a', code: 'unavailable', message, registry: 'r.example.com' };
    expect(unresolvableNote({ ...what, isUnasked: true })).to.equal(
      'image r.example.com/proxy/a was not looked up yet (unavailable): r.example.com answers 502 for its project proxy',
    );
  });

  const open: [given: string, what: Parameters<typeof input>, expected: string][] = [
    [
      'an open placement',
      [{ a: failed(300), b: known('linux/amd64,linux/arm64') }],
      'tolerates amd64, arm64: not resolved: a (images.unresolvable: open)',
    ],
    [
      'an open placement without nodes',
      [{ a: failed(300) }, { clusterArchitectures: [] }],
      'tolerates no architecture, because no node reports one: not resolved: a (images.unresolvable: open)',
    ],
    [
      'a fallback',
      [{ a: failed(300) }, { settings: { unresolvable: 'fallback', fallback: ['arm64'] } }],
      'tolerates arm64: not resolved: a (images.unresolvable: fallback)',
    ],
    [
      'a release',
      [{ a: known('linux/s390x'), b: known('linux/arm') }, { settings: { noCommonArchitecture: 'release' } }],
      'tolerates amd64, arm64: the images have no architecture in common (placement.noCommonArchitecture: release)',
    ],
  ];
  for (const [given, what, expected] of open) {
    it(`of ${given}, names the set and why`, () => {
      const decision = decideCase(input(...what));
      expect(decision.kind === 'place' && openNote(decision)).to.equal(expected);
    });
  }

  it('fits an Event', () => expect(NOTE_BYTES).to.equal(1024));
});

describe('a toleration that is stale', () => {
  const TAINT = { key: 'supported-arch', effect: 'NoSchedule' };
  const ARM = toleration('supported-arch=arm64:NoSchedule');
  const rows: [given: string, present: JsonObject[], expected: JsonObject[]][] = [
    ['is of our form, for an architecture outside of the set', [ARM], [ARM]],
    ['is none for one within', [toleration('supported-arch=amd64:NoSchedule')], []],
    ['is none of another key', [toleration('arch=arm64:NoSchedule')], []],
    ['is none of another effect', [toleration('supported-arch=arm64:NoExecute')], []],
    ['is none of another form', [{ key: 'supported-arch', operator: 'Exists' }, { operator: 'Exists' }], []],
  ];
  for (const [given, present, expected] of rows) {
    it(given, () =>
      expect(staleUnder(decideCase(input({ a: known('linux/amd64') })), present, TAINT)).to.deep.equal(expected),
    );
  }
});

describe('the time at which a pod starts without its images', () => {
  const rows: readonly (readonly [what: string, at: string, written: string])[] = [
    ['a minute later', '2026-03-01T06:13:20.000Z', '2026-03-01T06:12:20.900Z'],
    ['after midnight', '2026-03-01T00:01:10.000Z', '2026-02-28T23:59:10.000Z'],
  ];
  for (const [what, at, written] of rows) {
    it(`is read from the note as it was written: ${what}`, () => {
      const note = `image a could not be resolved; ${startsAtLatestText(Date.parse(at))}`;
      expect(note).to.contain(`at ${at.slice(11, 19)} UTC at the latest`);
      expect(readStartsAtLatest(note, Date.parse(written))).to.equal(Date.parse(at));
    });
  }

  it('counts a fraction of a second as a whole one', () =>
    expect(startsAtLatestText(Date.parse('2026-03-01T06:13:19.001Z'))).to.contain('06:13:20 UTC'));

  it('is not read from other notes, or without the time of the note', () => {
    expect(readStartsAtLatest('the pod starts by itself soon', 0)).to.equal(undefined);
    expect(readStartsAtLatest('the pod starts by itself at 99:99:99 UTC at the latest', 0)).to.equal(undefined);
    expect(readStartsAtLatest('the pod starts by itself at 06:13:20 UTC at the latest', Number.NaN)).to.equal(
      undefined,
    );
  });
});
