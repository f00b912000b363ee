/** The release notes: the steps of an update first, then what changed, then how to install and verify it. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HIGHLIGHTS, type Section, STEPS, sectionOf } from '../changelog.ts';
import { pageOf, releasedPage } from '../names.ts';
import { ISSUER, workflowIdentity } from '../sign.ts';
import type { Release } from '../types.ts';
import type { Digests } from './sums.ts';

/** Who signs: the workflow of the repository, without a key, or a person with the private key of cosign.pub. */
export type Signer = 'workflow' | 'key';

/** Writes release-notes.md to `release.out` and returns its path. Throws if CHANGELOG.md has no section for the version. */
export async function makeNotes(release: Release, digests: Digests, signer: Signer = 'workflow'): Promise<string> {
  const changelog = await readFile(join(release.checkout, 'CHANGELOG.md'), 'utf8');
  const section = sectionOf(changelog, release.version);
  if (section === undefined) throw new Error(`CHANGELOG.md: no section "## ${release.version}"`);
  const file = join(release.out, 'release-notes.md');
  await writeFile(file, releaseNotes(release, digests, section, signer));
  return file;
}

/** Returns the release notes, in Markdown. */
export function releaseNotes(release: Release, digests: Digests, section: Section, signer: Signer): string {
  const page = (text: string) => releasedPage(text, 'CHANGELOG.md', release);
  const textOf = (wanted: string) => section.parts.find(({ title }) => title === wanted)?.text;
  const changes = section.parts
    .filter(({ title }) => title !== STEPS && title !== HIGHLIGHTS)
    .map(({ title, text }) => (title === undefined ? text : `### ${title}\n\n${text}`));
  const { version, image, chart, downloads, tag, source } = release;
  const platforms = Object.entries(digests.platforms ?? {});
  const rows = [
    ['image, all platforms', `${image}:${version}`, digests.image],
    ...platforms.map(([platform, digest]) => [`image, ${platform}`, `${image}@…`, digest]),
    ['chart', `oci://${chart}:${version}`, digests.chart],
  ];
  const highlights = textOf(HIGHLIGHTS);
  return [
    `## Before you update\n\n${page(textOf(STEPS) ?? 'This version needs no steps of your own.')}`,
    ...(highlights === undefined ? [] : [`## In short\n\n${page(highlights)}`]),
    `## What changed\n\n${page(changes.length === 0 ? 'See above.' : changes.join('\n\n'))}`,
    `## Install

For Kubernetes 1.36 and later, with Helm or with kubectl:

\`\`\`sh
helm install archaware oci://${chart} --version ${version} --namespace archaware --create-namespace
\`\`\`

\`\`\`sh
kubectl apply -f ${downloads}/${tag}/archaware-controller.yaml
\`\`\`

For Kubernetes 1.30 to 1.35: \`--set config.webhook.enabled=true\`, or \`archaware-controller-1.30.yaml\`.
[Everything else about installing](${pageOf(release, 'docs/install.md')}).`,
    `## Digests

| what | name | digest |
| --- | --- | --- |
${rows.map((row) => `| ${row.map((cell, at) => (at === 0 ? cell : `\`${cell}\``)).join(' | ')} |`).join('\n')}

\`SHA256SUMS\` has the sums of all files of this release.`,
    `## Verify

\`\`\`sh
${verifyLines(release, digests.image, signer).join('\n')}
\`\`\`

${signer === 'key' ? '`cosign.pub` is one of the files of this release. ' : ''}Made from commit [\`${release.commit.slice(0, 12)}\`](${source}/commit/${release.commit}).
[How to verify the chart, the SBOM, the provenance and the files](${pageOf(release, 'docs/verify.md')}).`,
  ]
    .join('\n\n')
    .concat('\n');
}

function verifyLines(release: Release, digest: string, signer: Signer): string[] {
  const verify = `cosign verify ${release.image}@${digest}`;
  if (signer === 'key') return [`${verify} --key cosign.pub --insecure-ignore-tlog`];
  return [
    `${verify} \\`,
    `  --certificate-identity ${workflowIdentity(release)} \\`,
    `  --certificate-oidc-issuer ${ISSUER}`,
  ];
}
