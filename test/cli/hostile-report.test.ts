import { expect } from 'chai';
import { parse } from 'yaml';
import { checkObjects } from '../../src/analysis/readiness/check-objects.ts';
import { createInventory } from '../../src/analysis/readiness/inventory.ts';
import type { Report } from '../../src/analysis/readiness/report.ts';
import { renderCheck } from '../../src/cli/check/run-check.ts';
import { createPaint } from '../../src/cli/paint.ts';
import { renderReport } from '../../src/cli/report/run-report.ts';
import type { JsonObject } from '../../src/kit/json.ts';
import { answer, object, report } from '../analysis/readiness/world.ts';
import { HOSTILE_NAMES } from '../browser/reports.ts';
import { settings } from '../placement/objects.ts';

const REPORT_FORMS = ['table', 'json', 'yaml', 'html'];
const CHECK_FORMS = ['table', 'json', 'yaml', 'markdown'];

/** Names that somebody could write to a terminal, a page or a comment. The API server refuses most of them; files may hold them. */
const HOSTILE: readonly string[] = [
  ...HOSTILE_NAMES,
  '\x1b]0;owned\x07\x1b[2J',
  '\u009b31m',
  'a\nb\r\nc\td',
  '[x](javascript:alert(1))',
  '![x](https://evil.example/x.png)',
  '`code` | cell | @team',
  'a\\|b',
  '`x` @team <b>y</b> `',
  'end\\',
  'key: value\n- x',
  '#comment',
];

function objectsNamed(name: string): JsonObject[] {
  const annotations = { 'archaware.dev/architectures': 'amd64' };
  return [
    object({ name, namespace: name, images: [`x-amd64:${name}`], labels: { team: name } }),
    object({ name: `${name}2`, annotations, pod: { nodeSelector: { disk: name }, nodeName: name } }),
    object({ name: `${name}3`, pod: { containers: [{ name, image: 'gone' }] } }),
  ];
}

function reportNamed(name: string): Report {
  return report({ objects: objectsNamed(name), grouping: { by: 'label', key: 'team' }, newerOf: () => name });
}

function rendered(name: string, form: string): string {
  const options = { source: name, createdAt: '', namedTargets: true, columns: 80 };
  return renderReport(reportNamed(name), form, options);
}

function checked(name: string, form: string): string {
  const inventory = createInventory();
  for (const each of objectsNamed(name)) inventory.add(each);
  const circumstances = {
    settings: settings(),
    architectures: ['arm64'],
    namespaceOf: () => ({ name: 'x', labels: {}, preferred: undefined }),
    namesOf: () => [],
  };
  const result = checkObjects(inventory.units(), ['arm64'], circumstances, ({ image }) => answer(image));
  return renderCheck(result, ['arm64'], form, {
    columns: undefined,
    paint: createPaint({ columns: undefined, colors: false }),
  });
}

describe('hostile names in a report', () => {
  for (const name of HOSTILE) {
    it(`${JSON.stringify(name)} reaches no output as more than text`, () => {
      const unsafe = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;
      for (const form of REPORT_FORMS) expect(rendered(name, form), `report, ${form}`).to.not.match(unsafe);
      for (const form of CHECK_FORMS) expect(checked(name, form), `check, ${form}`).to.not.match(unsafe);
    });

    it(`${JSON.stringify(name)} is the same for a program`, () => {
      const expected = JSON.parse(JSON.stringify(reportNamed(name)));
      expect(JSON.parse(rendered(name, 'json'))).to.deep.equal(expected);
      // YAML has no halves of surrogate pairs.
      if (!/\p{Cs}/u.test(name)) expect(parse(rendered(name, 'yaml'))).to.deep.equal(expected);
    });

    it(`${JSON.stringify(name)} adds neither lines nor cells to Markdown, and no markup`, () => {
      const plain = checked(name, 'markdown')
        .replaceAll(/<code>[^<]*<\/code>/g, 'NAME')
        .replaceAll(/`[^`\n]*`/g, 'NAME');
      expect(plain).to.not.match(/[<>`[\]@\\&]/);
      for (const block of plain.split('\n\n').filter((part) => part.startsWith('|'))) {
        const counts = block
          .trim()
          .split('\n')
          .map((line) => line.split('|').length);
        expect(new Set(counts).size, block).to.equal(1);
      }
    });
  }
});
