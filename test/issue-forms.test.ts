import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { schema } from '../src/config/schema.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const FOLDER = '.github/ISSUE_TEMPLATE/';
const text = (path: string) => readFileSync(ROOT + path, 'utf8');

// GitHub's form schema: docs.github.com, "Syntax for GitHub's form schema". It rejects a key that it does not know.
const id = z.string().regex(/^[A-Za-z0-9_-]+$/);
const validations = z.strictObject({ required: z.boolean().optional() }).optional();
const label = z.string().min(1);
const description = z.string().optional();
const options = z
  .array(z.string().min(1))
  .min(1)
  .refine((all) => new Set(all).size === all.length, 'options are unique');
const element = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('markdown'), attributes: z.strictObject({ value: z.string().min(1) }) }),
  z.strictObject({
    type: z.literal('textarea'),
    id,
    attributes: z.strictObject({
      label,
      description,
      placeholder: z.string().optional(),
      value: z.string().optional(),
      render: z.string().optional(),
    }),
    validations,
  }),
  z.strictObject({
    type: z.literal('input'),
    id,
    attributes: z.strictObject({
      label,
      description,
      placeholder: z.string().optional(),
      value: z.string().optional(),
    }),
    validations,
  }),
  z.strictObject({
    type: z.literal('dropdown'),
    id,
    attributes: z.strictObject({
      label,
      description,
      multiple: z.boolean().optional(),
      options,
      default: z.number().optional(),
    }),
    validations,
  }),
  z.strictObject({
    type: z.literal('checkboxes'),
    id,
    attributes: z.strictObject({
      label,
      description,
      options: z.array(z.strictObject({ label, required: z.boolean().optional() })).min(1),
    }),
  }),
]);
const form = z.strictObject({
  name: z.string().min(3),
  description: z.string().min(3).max(200),
  title: z.string().optional(),
  // Labels that GitHub gives to every new repository.
  labels: z.array(z.enum(['bug', 'documentation', 'enhancement', 'question'])),
  body: z.array(element).min(1),
});

const forms = readdirSync(ROOT + FOLDER).filter((file) => file !== 'config.yml');

describe('the issue forms', () => {
  for (const file of forms) {
    it(`${file} is a form as GitHub documents it`, () => {
      const { body } = form.parse(parse(text(FOLDER + file)));
      const fields = body.flatMap((each) => (each.type === 'markdown' ? [] : each));
      expect(fields).to.have.length.above(0);
      for (const names of [fields.map((field) => field.id), fields.map(({ attributes }) => attributes.label)]) {
        expect(names).to.deep.equal([...new Set(names)]);
      }
    });

    it(`${file} links only pages that exist`, () => {
      const links = [...text(FOLDER + file).matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
      expect(links.filter((link) => !/^\.\.\/blob\/HEAD\//.test(link))).to.deep.equal([]);
      expect(links.filter((link) => !existsSync(ROOT + link.slice('../blob/HEAD/'.length)))).to.deep.equal([]);
    });
  }

  it('are the only way to open an issue', () => {
    expect(parse(text(`${FOLDER}config.yml`))).to.deep.equal({ blank_issues_enabled: false });
  });

  it('ask in a report of a bug for what status and explain say, and for each mode that there is', () => {
    const { body } = form.parse(parse(text(`${FOLDER}bug.yml`)));
    const attributes = (name: string) =>
      body.flatMap((each) => (each.type !== 'markdown' && each.id === name ? each.attributes : []));
    expect(attributes('status')[0]?.description).to.include('status -o json');
    expect(attributes('explain')[0]?.description).to.include('explain NAMESPACE/POD -o json');
    const [mode] = attributes('mode');
    const modes = schema.shape.placement.shape.mode.unwrap();
    expect(mode)
      .to.have.property('options')
      .that.includes.members([...modes.options]);
  });
});
