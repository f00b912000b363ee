import { EXIT } from '../../src/app/surroundings.ts';
import { IMAGE_ERROR_CODES, type ImageErrorCode } from '../../src/oci/errors.ts';
import { code, type Part, table } from './markdown.ts';

/** The closed catalogue of oci/errors.ts: its type requires exactly one entry for each code. */
const IMAGES: Readonly<Record<ImageErrorCode, { readonly meaning: string; readonly next: string }>> = {
  denied: {
    meaning: 'The registry answers 401 or 403, with every credential that fits and without any.',
    next: 'Provide a credential that may read the image. A wrong credential is ignored silently if another works.',
  },
  'not-found': {
    meaning: 'The registry answers 404: there is no such tag or digest, or it is hidden.',
    next: 'Check the name. Some registries hide private images: provide a pull secret.',
  },
  unsupported: {
    meaning:
      'The content cannot be read as an image: a manifest of schema 1, an artifact, or one for an architecture that Go does not have (`x64`, `armv7l`).',
    next: 'State its architectures in `images.overrides`.',
  },
  malformed: {
    meaning: 'The answer is not what a registry should send, or its digest does not match.',
    next: 'Look for a proxy in between; otherwise use `images.overrides`.',
  },
  'too-large': {
    meaning: 'An answer exceeds the size, the depth or the number of entries that archaware reads.',
    next: '`images.overrides`.',
  },
  'forbidden-address': {
    meaning:
      'The name, a redirect or a token service leads to a blocked address: loopback, link-local, metadata, the API server, one of `registries.addresses.deny`, or from https to plain http; or a `registries.conf` blocks the registry.',
    next: 'The message names the file that blocks it, or the key that allows it: `registries.insecure`, `registries.mirrors`, `registries.addresses.allow`.',
  },
  'rate-limited': {
    meaning:
      'The registry answers 429. archaware waits for `Retry-After` before it uses the account there again; other projects of the registry are asked.',
    next: 'Log in, or use a mirror.',
  },
  unavailable: {
    meaning: 'No connection, no certificate that can be verified, plain http, or 5xx.',
    next: 'Check names, network policies, proxies and certificates (`registries.caFile`); `registries.insecure` allows plain http. "was not looked up yet": it [waits for its turn](registries.md#after-a-failure).',
  },
  timeout: {
    meaning: 'No complete answer within `registries.timeout`, or three times that for the whole lookup.',
    next: 'The same as for `unavailable`.',
  },
};

const EXITS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'Done. `run`: ended by a signal. `clean`: nothing of archaware is left but what is harmless on pods that it kept.',
  failed:
    'Failed: the API server cannot be reached or refuses. `clean` refused or was interrupted. `status` could read nothing.',
  found:
    'Found something: `plan` changes to make; `status` problems; `clean` something that is left; `inspect` an image that could not be looked up; `check` an image that lacks or, with `--compare`, dropped an architecture, or could not be looked up; `report` less that is ready than `--fail-under` asks for; with `--deep` a program for another platform.',
  usage:
    'Usage, configuration, kubeconfig or a file; `clean` without a terminal and without `--yes`; nothing to judge for `report`, `check` and `config validate`, such as no workload.',
};

/** The errors of images. */
export function errorsPart(): Part {
  const images = IMAGE_ERROR_CODES.map((name) => [code(name), IMAGES[name].meaning, IMAGES[name].next]);
  return {
    page: 'troubleshooting.md',
    name: 'errors',
    text: table(['code', 'what it says', 'what to do'], images),
  };
}

/** What the exit codes of the commands mean. */
export function exitCodesPart(): Part {
  const exits = Object.entries(EXIT).map(([name, number]) => [String(number), exitText(name)]);
  return { page: 'commands.md', name: 'exit codes', text: table(['code', ''], exits) };
}

function exitText(name: string): string {
  const text = Object.entries(EXITS).find(([known]) => known === name)?.[1];
  if (text === undefined) throw new Error(`the exit code ${name} has no text`);
  return text;
}
