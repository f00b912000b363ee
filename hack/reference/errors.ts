import { EXIT } from '../../src/app/context.ts';
import { IMAGE_ERROR_CODES, type ImageErrorCode } from '../../src/oci/errors.ts';
import { code, heading, join, type Page, table } from './markdown.ts';

/** The closed catalogue of oci/errors.ts: its type requires exactly one entry for each code. */
const IMAGES: Readonly<Record<ImageErrorCode, { readonly meaning: string; readonly next: string }>> = {
  denied: {
    meaning: 'The registry answers 401 or 403, with every credential that fits and without any.',
    next: 'A credential that may read the image. A wrong one is passed over silently where another works.',
  },
  'not-found': {
    meaning: 'The registry answers 404: there is no such tag or digest, or not for us.',
    next: 'Check the name. Some registries hide what is private: a pull secret.',
  },
  unsupported: {
    meaning:
      'What is there cannot be read as an image: a manifest of schema 1, an artifact, or one for an architecture that Go does not have (`x64`, `armv7l`).',
    next: '`images.overrides` states its architectures.',
  },
  malformed: {
    meaning: 'The answer is not what a registry should send, or its digest does not match.',
    next: 'A proxy in between? Else `images.overrides`.',
  },
  'too-large': {
    meaning: 'An answer exceeds the size, the depth or the number of entries that we read.',
    next: '`images.overrides`.',
  },
  'forbidden-address': {
    meaning:
      'The name, a redirect or a token service leads to an address that is not asked: loopback, link-local, metadata, the API server, one of `registries.addresses.deny`, or from https to plain http.',
    next: 'The message names the key that opens it: `registries.insecure`, `registries.mirrors`, `registries.addresses.allow`.',
  },
  'rate-limited': {
    meaning: 'The registry answers 429. `Retry-After` is waited for.',
    next: 'Log in, or use a mirror.',
  },
  unavailable: {
    meaning: 'No connection, no certificate that can be verified, plain http, or 5xx.',
    next: 'Check names, network policies, proxies and certificates (`registries.caFile`); `registries.insecure` allows plain http. A host that failed five times in a row is left alone for up to 30 s.',
  },
  timeout: {
    meaning: 'No complete answer within `registries.timeout`, or three times that for the whole look-up.',
    next: 'As with `unavailable`.',
  },
};

const EXITS: Readonly<Record<keyof typeof EXIT, string>> = {
  done: 'Done. `run`: ended by a signal. `clean`: nothing of ours is left.',
  failed:
    'Failed: the API server cannot be reached or refuses; `clean` found a live leader or a Deployment of ours that wants replicas, was interrupted, or was answered with no.',
  found: '`plan`: there are changes to make. `inspect`: an image could not be resolved. `clean`: something is left.',
  usage:
    'Usage, configuration or kubeconfig; `clean` without a terminal and without `--yes`. Each problem stands in a line with key, value, what is expected, file and line.',
};

/** The errors of images, and the exit codes. */
export function errorsPage(): Page {
  const images = IMAGE_ERROR_CODES.map((name) => [code(name), IMAGES[name].meaning, IMAGES[name].next]);
  const exits = Object.entries(EXIT).map(([name, number]) => [String(number), exitText(name)]);
  const text = join(
    heading('Errors'),
    '## Images',
    'In the Event `ImageUnresolvable`, in `inspect` and `explain`, and as `result` of the metric `archaware_image_resolutions_total`. How each situation is configured: [registries](../registries.md).',
    table(['code', 'what it says', 'what to do'], images),
    'An object with more than 256 different images has `too-many-images` in its Event and in `explain`: no others are asked about ([registries](../registries.md#what-one-tenant-may-take)).',
    '## Exit codes',
    table(['code', ''], exits),
    'What ends a command stands in one line on stderr, with what to do next; a second signal ends it at once, with 130 or 143.',
  );
  return { file: 'errors.md', text };
}

function exitText(name: string): string {
  const text = Object.entries(EXITS).find(([known]) => known === name)?.[1];
  if (text === undefined) throw new Error(`the exit code ${name} has no text`);
  return text;
}
