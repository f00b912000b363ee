import { expect } from 'chai';
import { pageOf, referenceParts, withPart } from '../hack/reference.ts';

const parts = referenceParts();

describe('the generated parts of the documents', () => {
  for (const part of parts)
    it(`${part.name} in ${part.page}: is what the sources say (else: npx tsx hack/reference.ts)`, async () => {
      const text = await pageOf(part);
      expect(withPart(text, part)).to.equal(text);
    });

  it('are refused by a page that has no marks for them', () => {
    expect(() => withPart('# Page', { page: 'page.md', name: 'keys', text: '' })).to.throw(
      'has no <!-- keys: begin -->',
    );
  });

  it('have rows for a few known facts', () => {
    const rows: [name: string, row: RegExp][] = [
      ['keys', /^\| `taints\.key`<br>`ARCHAWARE_TAINTS__KEY` \| `supported-arch` \|.*\| yes \|$/m],
      ['keys', /^\| `images\.overrides`.*\| {2}\|$/m],
      ['keys', /^\| `images\.cache\.maxEntries`.*\| yes \|$/m],
      ['policies', /^\| `podSelector` \|/m],
      ['flags', /^\| `--stop` \| Scale the Deployment of archaware to 0 first, and wait for the leader to end \|$/m],
      ['flags', /^\| `--lookup-timeout DURATION` \| .* \| `plan`, `explain`, `inspect`, `report`, `check` \|$/m],
      ['metrics', /^\| `archaware_reconcile_total` \| `controller`, `result` \|/m],
      ['metrics', /^\| `archaware_admission_duration_seconds` \(histogram\) \| {2}\|/m],
      ['events', /^### WrongNode\n\nA container/m],
      ['errors', /^\| `rate-limited` \|/m],
      ['exit codes', /^\| 2 \|/m],
      ['rights', /^\| `pull-secrets` \| `ClusterRole archaware-controller-pull-secrets` \| `secrets` \| get \|/m],
    ];
    for (const [wanted, row] of rows) expect(parts.find(({ name }) => name === wanted)?.text, wanted).to.match(row);
  });
});
