import fc from 'fast-check';
import { isLabelKey, isLabelValue } from '../../src/kit/label-syntax.ts';
import { parseRule, readRules } from '../../src/placement/nodes/label-rules.ts';
import { decideLabels } from '../../src/placement/nodes/labels.ts';
import { must, type Target } from './target.ts';

const name = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,20}[A-Za-z0-9])?$/),
  fc.constantFrom('x', 'constructor'),
);
const key = fc.oneof(
  name,
  fc.tuple(fc.domain(), name).map((parts) => parts.join('/')),
  fc.constantFrom('a/a', 'a/b', 'a/c'),
);
const condition = fc.oneof(
  key,
  key.map((text) => `!${text}`),
  fc
    .tuple(key, fc.constantFrom('=', '!='), fc.oneof(name, fc.constantFrom('', 'false', 'true')))
    .map((parts) => parts.join('')),
);
const line = fc
  .tuple(
    fc.constantFrom('', ' ', '\t'),
    fc.oneof(condition, fc.constant('')),
    fc.constantFrom('', ' ', ' # of the card', '#'),
  )
  .map((parts) => parts.join(''));

/** Files of `nodeLabels.directory`: the text is cut into three files, which decide for two nodes. */
export const labelRules: Target = {
  name: 'label-rules',
  valid: fc
    .array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\n---\n')), { minLength: 1, maxLength: 12 })
    .map((lines) => lines.flat().join('')),
  pieces: [
    'a/a',
    'a/b',
    'a/c',
    '!',
    '=',
    '!=',
    '#',
    '\n',
    '\r\n',
    '\r',
    ' ',
    '\t',
    '/',
    '.',
    '-',
    'false',
    'kubernetes.io/',
    '\n---\n',
  ],
  openings: ['a', '#', 'a=', 'a/'],
  run(text) {
    const parts = text.split('---', 3);
    const files = ['a/a', 'a/b', 'a/c'].map((label, index) => ({ label, file: label, text: parts[index] ?? '' }));
    for (const file of files) checkLines(file.text);
    const { rules, problems } = readRules(files);
    must(problems.every(isHarmless), 'a problem can be shown');
    must(rules.rules.length + rules.refused.size === files.length, 'a file is a rule, or refused');
    must(rules.refused.size === 0 || problems.length > 0, 'a refused rule is reported');
    for (const present of [{}, { x: 'true', 'a/a': 'true', 'a/b': 'false' }]) {
      const { added, removed, recorded } = decideLabels(present, ['a/a', 'a/b'], rules);
      const after = new Map<string, string>(Object.entries(present));
      for (const label of removed) must(after.get(label) === 'true' && after.delete(label), 'only what is ours goes');
      for (const label of added)
        must(!after.has(label) && after.set(label, 'true').has(label), 'only what is absent comes');
      const again = decideLabels(Object.fromEntries(after), recorded, rules);
      must(again.added.length + again.removed.length === 0, 'one decision settles a node');
      must(again.recorded.join() === recorded.join(), 'the record is settled, too');
    }
    return rules.refused.size === 0 && rules.rules.some(({ conditions }) => conditions.length > 0);
  },
};

function checkLines(text: string): void {
  const { conditions, problems } = parseRule(text);
  const last = text.split(/\r\n|\r|\n/).length;
  const lines = [...conditions, ...problems].map((found) => found.line);
  must(new Set(lines).size === lines.length, 'a line is a condition, or refused');
  must(
    lines.every((number) => number >= 1 && number <= last),
    'a line is one of the text',
  );
  for (const { key: label, value } of conditions)
    must(isLabelKey(label) && isLabelValue(value), 'names and values are valid');
}

/** Whether a problem's text is bounded and moves no cursor. It may contain unassigned characters of Unicode. */
function isHarmless(problem: string): boolean {
  return problem.length <= 400 && !/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(problem);
}
