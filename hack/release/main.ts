/**
 * Makes and publishes a release; hack/release.sh starts it, and its --help says how. The phases, in order:
 *
 *   1 check   everything that can be known before anything is built; all problems are listed together
 *   2 build   image, chart, manifests, executables, package, notes and sums, from a clean clone of the tag
 *   3 push    image and chart, by digest, without a tag
 *   4 sign    image, chart and sums; SBOM and provenance become attestations of the image
 *   5 tag     last, so that a tag is never seen without its signature
 */
import { rmSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attempt, messageOf, run } from '../programs.ts';
import {
  commitTime,
  identityProblems,
  installedProblems,
  keyProblems,
  registryAnswers,
  registryProblems,
  repositoryFacts,
  repositoryProblems,
  toolProblems,
} from './checks.ts';
import { type Files, makeFiles } from './files.ts';
import { baseImageOf, buildImage } from './image/build.ts';
import type { Layout } from './image/layout.ts';
import { type CommandLine, readCommandLine, readTarget, type Target } from './options.ts';
import { pushByDigest, refusalOf, tagAs, tagged } from './push.ts';
import { attest, keySigner, type Signer, sign, signFile, workflowIdentity } from './sign.ts';
import type { Artifact, Release } from './types.ts';
import { checkVersions } from './versions.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const NAME = 'archaware-controller';

const say = (text: string) => process.stderr.write(`release: ${text}\n`);

async function main(args: readonly string[]): Promise<number> {
  const line = readCommandLine(args);
  if (typeof line === 'string') {
    process.stderr.write(`release.sh: ${line}; hack/release.sh --help\n`);
    return 3;
  }
  const work = await mkdtemp(join(tmpdir(), 'archaware-release-'));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      rmSync(work, { recursive: true, force: true });
      process.stderr.write(`release.sh: interrupted by ${signal}; a second run completes what this one began\n`);
      process.exit(1);
    });
  }
  try {
    await releaseIt(line, work);
    return 0;
  } catch (error) {
    process.stderr.write(`release.sh: ${messageOf(error)}\n`);
    return 1;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function releaseIt(line: CommandLine, work: string): Promise<void> {
  const { release, target } = await check(line, work);
  say(`${release.tag} is commit ${release.commit}; building from a clone of it`);
  await clone(release);
  const base = await baseImageOf(release.checkout, target.baseImage);
  await rm(release.out, { recursive: true, force: true });
  await mkdir(release.out, { recursive: true });
  const image = await buildImage(release, base);
  say(`the image is ${image.digest}; making the files`);
  const files = await makeFiles(release, image, base, target.signing.kind === 'key' ? 'key' : 'workflow');
  for (const gap of files.gaps) say(`${basename(files.sbom)}: ${gap}`);
  process.stdout.write(`image ${release.image}@${image.digest}\nchart ${release.chart}@${files.chart.digest}\n`);
  if (line.push) await publish(release, target, image, files);
  else say('nothing was pushed and nothing signed');
  say(`the files are in ${release.out}`);
  if (line.push) process.stdout.write(`${installLine(release)}\n`);
}

/** Phase 1. Throws with all problems together. */
async function check({ version, push }: CommandLine, work: string): Promise<{ release: Release; target: Target }> {
  const origin = await attempt('git', ['-C', ROOT, 'remote', 'get-url', 'origin']);
  const { target, problems, notes } = readTarget(
    process.env,
    push,
    origin.code === 0 ? origin.stdout.trim() : undefined,
  );
  for (const note of notes) say(note);
  const tag = `v${version}`;
  const facts = await repositoryFacts(ROOT, tag);
  const image = `${target.registry}/${target.repository}/${NAME}`;
  const chart = `${target.registry}/${target.repository}/charts/${NAME}`;
  const registry = registryProblems(
    push && problems.length === 0 ? await registryAnswers([image, chart], version) : [],
  );
  for (const note of registry.notes) say(note);
  const found = [
    ...repositoryProblems(facts),
    ...(await checkVersions(ROOT, version)),
    ...problems,
    ...(await installedProblems(ROOT)),
    ...(await toolProblems()),
    ...(await keyProblems(target.signing)),
    ...identityProblems(target.signing, process.env, { source: target.source, tag }),
    ...registry.problems,
  ];
  if (found.length > 0) {
    throw new Error(`${tag} cannot be released, nothing was built:\n${found.map((one) => `  - ${one}`).join('\n')}`);
  }
  const release: Release = {
    version,
    tag,
    commit: facts.head,
    created: await commitTime(ROOT, facts.head),
    registry: target.registry,
    repository: target.repository,
    image,
    chart,
    source: target.source,
    downloads: `${target.source}/releases/download`,
    checkout: join(work, 'checkout'),
    out: join(ROOT, 'dist/release', version),
    work,
  };
  return { release, target };
}

/** A clean clone of the tagged commit, with its packages. */
async function clone({ commit, checkout }: Release): Promise<void> {
  // Not --branch: a branch with the name of the tag would win.
  await run('git', ['clone', '--quiet', '--no-hardlinks', '--no-checkout', ROOT, checkout]);
  await run('git', ['-C', checkout, 'checkout', '--quiet', '--detach', commit]);
  await run('npm', ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: checkout });
}

/** An image index or a chart, and the manifests in it that are signed too. */
type Pushed = Artifact & { readonly name: string; readonly parts: readonly string[] };

/** Phase 3, and what follows. */
async function publish(release: Release, target: Target, image: Layout, files: Files): Promise<void> {
  const { version } = release;
  const artifacts: readonly Pushed[] = [
    {
      name: release.image,
      layout: image.directory,
      digest: image.digest,
      parts: image.platforms.map(({ digest }) => digest),
    },
    { name: release.chart, layout: files.chart.layout, digest: files.chart.digest, parts: [] },
  ];
  for (const { name, digest } of artifacts) {
    const found = await tagged(name, version);
    // Before the first push some registries do not say more; the push shows it, and then they are asked again.
    const refusal = found.kind === 'denied' ? undefined : refusalOf(name, version, found, digest);
    if (refusal !== undefined) throw new Error(`${refusal}. Nothing was pushed`);
  }
  try {
    for (const artifact of artifacts) await pushByDigest(artifact.name, artifact);
    await signAndTag(release, target, artifacts, files);
  } catch (error) {
    throw new Error(
      `${messageOf(error)}\n${release.tag} is not complete: what is pushed without its signature has no tag. Remove the cause, and run hack/release.sh ${version} again`,
    );
  }
}

/** Phases 4 and 5. */
async function signAndTag(
  release: Release,
  target: Target,
  artifacts: readonly Pushed[],
  { sbom, provenance, sums }: Files,
): Promise<void> {
  const { version } = release;
  for (const { name, digest } of artifacts) {
    const refusal = refusalOf(name, version, await tagged(name, version), digest);
    if (refusal !== undefined) throw new Error(refusal);
  }
  say('image and chart are pushed by digest; signing');
  const signer = await signerOf(release, target);
  // One after the other: a registry without the referrers API keeps them in one list, which two writers at once would break.
  for (const { name, digest, parts } of artifacts) {
    for (const one of [digest, ...parts]) await sign(`${name}@${one}`, signer);
    if (name === release.image) {
      await attest(`${name}@${digest}`, 'cyclonedx', sbom, signer);
      await attest(`${name}@${digest}`, 'slsaprovenance1', provenance, signer);
    }
  }
  await signFile(sums, `${sums}.sigstore.json`, signer);
  if (signer.kind === 'key') await copyFile(signer.publicKey, join(release.out, 'cosign.pub'));
  say('signed, attested and verified; tagging');
  for (const { name, digest } of artifacts) await tagAs(name, digest, version);
}

/** What a user runs; README.md has the same line. */
function installLine({ chart, version }: Release): string {
  return `helm install archaware oci://${chart} --version ${version} --namespace archaware --create-namespace`;
}

async function signerOf(release: Release, { signing }: Target): Promise<Signer> {
  switch (signing.kind) {
    case 'key':
      return keySigner(signing.key, release.work);
    case 'keyless':
      return { kind: 'keyless', identity: workflowIdentity(release) };
    case 'none':
      throw new Error('there is nothing to sign with');
    default:
      return signing satisfies never;
  }
}

process.exitCode = await main(process.argv.slice(2));
