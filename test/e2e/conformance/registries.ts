import { type Behaviour, better, different, type Shown, same } from './behaviour.ts';

const here = (title: string): Shown => ['e2e/conformance-registries.e2e.ts', title];
const registries = (title: string): Shown => ['e2e/registries.e2e.ts', title];
const secrets = (title: string): Shown => ['e2e/private-images.e2e.ts', title];
const credentials = (title: string): Shown => ['e2e/credentials.e2e.ts', title];
const plugin = (title: string): Shown => ['oci/credentials/provider.test.ts', title];
const of = (what: string): Shown => [
  'e2e/conformance-placement.e2e.ts',
  `a Deployment of ${what} requires exactly what that runs on`,
];

/** Where images are asked for, and as whom. */
export const REGISTRIES: readonly Behaviour[] = [
  same(
    'pull secret in the pod',
    'M, N',
    secrets('are read with a pull secret of type dockerconfigjson where the registry asks for bearer credentials'),
  ),
  different(
    'global pull secret',
    'M, N',
    "files and programs of the operator, on any cluster: `credentials.*` instead of OpenShift's Secret",
    credentials('of auths of a Docker configuration file serve pods that bring none'),
  ),
  same('pull secret in the pod and a global one', 'M, N', credentials("come after the pod's own")),
  same('pull secret with a pattern of hosts', 'M, N', here('a pull secret with a pattern of hosts is used'), [
    'oci/credentials/match.test.ts',
    'in a bounded time for hostile globs',
  ]),
  better(
    'missing pull secret',
    'M, N',
    'an Event names it, and the pod is placed as soon as the Secret exists',
    secrets('are served once a missing secret exists, which an Event named'),
  ),
  same('self-signed certificate, trusted by its CA', 'M', registries('verifies by registries.caFile')),
  same(
    'self-signed certificate, listed as insecure',
    'M',
    here('a registry with a self-signed certificate is asked if registries.insecure names it'),
  ),
  better(
    'self-signed certificate, neither',
    'M',
    'an Event says that the certificate is the problem',
    registries('names the certificate as the problem of a registry that nobody vouches for'),
  ),
  different(
    'registry blocked by configuration',
    'M',
    'blocked by address (`registries.addresses.deny`), under every name; its pods are released when `images.fallbackAfter` is over',
    here('a registry with a denied address is not asked, and its pods are released when images.fallbackAfter is over'),
  ),
  same('short name', 'M, N', registries('finds the images of Docker Hub by their short names')),
  same(
    'mirror, the source is down',
    'M, N',
    registries('asks the mirror, with the name of the registry, and not the registry'),
  ),
  same('mirror, never the source', 'M, N', registries('never asks the registry with fallback: false, and says so')),
  same('mirror misses', 'M, N', registries('asks the registry where the mirror does not have it')),
  same('tag and digest together', 'M', here('an image with a tag and a digest (the digest counts) is found')),
  same('digest with port', 'M', here('an image with a port and a digest is found')),
  same('tag with port', 'M', here('an image with a port and a tag is found')),
  same('registry proxy with a path', 'N', registries('puts the prefix of a mirror before the repository')),
  better(
    'proxy that answers an error falls back',
    'N',
    'also if it hangs, gives an invalid answer, or redirects to a forbidden address',
    ['oci/lookup/lookup.test.ts', 'goes on to the next if a mirror is broken, and to the source after the last'],
    ['oci/lookup/lookup.test.ts', 'goes on to the next if a mirror never answers, and to the source after the last'],
    ['oci/lookup/lookup.test.ts', 'goes on to the next if a mirror answers nonsense, and to the source after the last'],
    [
      'oci/lookup/lookup.test.ts',
      'goes on to the next if a mirror redirects to where it may not, and to the source after the last',
    ],
  ),
  same(
    'Docker config with several matching entries',
    'N',
    credentials('are tried one after another, and what worked for a repository comes first from then on'),
  ),
  ...[
    ['image', 'Image', 3],
    ['registry', 'Registry', 2],
    ['global', 'Global', 1],
  ].map(([name, type, runs]) =>
    same(
      `kubelet provider plug-in, ${name} cache`,
      'N',
      plugin(`whose answer is for ${type} runs ${runs} times for three images of two registries`),
    ),
  ),
];

/** What is found there. */
export const IMAGES: readonly Behaviour[] = [
  same('OCI index', 'M, N', of('an OCI index of two architectures')),
  better(
    'OCI manifest',
    'M, N',
    'its config names the architecture; Noe assumes amd64',
    of('an OCI manifest'),
    of('an OCI manifest of the architecture that is not preferred'),
  ),
  same('Docker list', 'M, N', of('a Docker manifest list')),
  better(
    'Docker schema 2',
    'M, N',
    'its config names the architecture; Noe assumes amd64',
    of('a Docker schema 2 manifest'),
  ),
  better(
    'images that cannot be inspected: the gate is removed after the limit',
    'M',
    'by time (`images.fallbackAfter`) and not after five tries, within the architectures of the other images, with an Event that names image, registry and reason; with a policy pods can wait',
    [
      'e2e/admission-unknown.e2e.ts',
      'opens pods images.fallbackAfter after the first failure, be it an error or silence, within what is known',
    ],
    [
      'e2e/admission-unknown.e2e.ts',
      'keeps the gate with images.unresolvable: wait, until the configuration says otherwise',
    ],
  ),
  same(
    'images that cannot be inspected, with a fallback: use the fallback',
    'M',
    here('pods of an image that cannot be inspected use the fallback'),
  ),
  same(
    'configuration removed right after it was created',
    'M',
    here('clean right after the installation removes everything, and gated pods run'),
  ),
  better(
    'cached tag not asked again',
    'M',
    'not even after its time to live: then a HEAD request shows whether it changed',
    here('a known tag is not looked up again, except with imagePullPolicy: Always'),
    ['oci/resolver.test.ts', 'for a tag that is old a HEAD with the same Accept'],
  ),
  same('`Always` asks again', 'M', here('a known tag is not looked up again, except with imagePullPolicy: Always')),
];
