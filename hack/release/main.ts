/**
 * Makes and publishes a release; hack/release.sh starts it, and its --help says how. The phases, in order:
 *
 *   1 check   everything that can be known before anything is built; all problems are listed together
 *   2 build   image, chart, manifests, executables, package, notes and sums, from a clean clone of the tag
 *   3 push    image and chart, by digest, without a tag
 *   4 sign    image, chart and sums; SBOM and provenance become attestations of the image
 *   5 tag     last, so that a tag is never seen without its signature
 */
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
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
import { attempt, run } from './programs.ts';
import { pushByDigest, refusalOf, tagAs, tagged } from './push.ts';
import { attest, keySigner, type Signer, sign, signFile, workflowIdentity } from './sign.ts';
import type { Release } from './types.ts';
import { checkVersions } from './versions.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const NAME = 'archaware-controller';

/** What a person did wrong or has to do; shown without a stack. */
class Refusal extends Error {}

const say = (text: string) => process.stderr.write(`release: ${text}\n`);

async function main(args: readonly string[]): Promise<number> {
  const line = readCommandLine(args);
  if (typeof line === 'string') {
    process.stderr.write(`release.sh: ${line}; hack/release.sh --help\n`);
    return 3;
  }
  const work = await mkdtemp(join(tmpdir(), 'archaware-release-'));
  try {
    await releaseIt(line, work);
    return 0;
  } catch (error) {
    const text = error instanceof Refusal ? error.message : error instanceof Error ? error.message : String(error);
    process.stderr.write(`release.sh: ${text}\n`);
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
    ...(await toolProblems()),
    ...(await keyProblems(target.signing)),
    ...registry.problems,
  ];
  if (found.length > 0) {
    throw new Refusal(`${tag} cannot be released, nothing was built:\n${found.map((one) => `  - ${one}`).join('\n')}`);
  }
  const seconds = Number(await run('git', ['-C', ROOT, 'log', '-1', '--format=%ct', facts.head]));
  const release: Release = {
    version,
    tag,
    commit: facts.head,
    created: new Date(seconds * 1000),
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
async function clone({ tag, commit, checkout }: Release): Promise<void> {
  const detached = ['-c', 'advice.detachedHead=false'];
  await run('git', [...detached, 'clone', '--quiet', '--no-hardlinks', '--branch', tag, ROOT, checkout]);
  const head = (await run('git', ['-C', checkout, 'rev-parse', 'HEAD'])).trim();
  if (head !== commit) throw new Error(`the clone of ${tag} is at ${head}, expected ${commit}: the tag has moved`);
  await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: checkout });
}

/** Phases 3, 4 and 5. */
async function publish(release: Release, target: Target, image: Layout, files: Files): Promise<void> {
  const { version } = release;
  const artifacts = [
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
    if (refusal !== undefined) throw new Refusal(`${refusal}. Nothing was pushed`);
  }
  for (const artifact of artifacts) await pushByDigest(artifact.name, artifact);
  for (const { name, digest } of artifacts) {
    const refusal = refusalOf(name, version, await tagged(name, version), digest);
    if (refusal !== undefined) throw new Refusal(`${refusal}. Pushed by digest, but neither signed nor tagged`);
  }
  say('image and chart are pushed by digest; signing');
  const signer = await signerOf(release, target);
  // One after the other: a registry without the referrers API keeps them in one list, which two writers at once would break.
  for (const { name, digest, parts } of artifacts) {
    for (const one of [digest, ...parts]) await sign(`${name}@${one}`, signer);
  }
  const reference = `${release.image}@${image.digest}`;
  await attest(reference, 'cyclonedx', files.sbom, signer);
  await attest(reference, 'slsaprovenance1', files.provenance, signer);
  await signFile(files.sums, `${files.sums}.sigstore.json`, signer);
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
