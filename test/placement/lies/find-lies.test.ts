import { expect } from 'chai';
import type { JsonObject } from '../../../src/kit/json.ts';
import type { ImageAnswer } from '../../../src/placement/images.ts';
import { findLies, imageLiesNote } from '../../../src/placement/lies/find-lies.ts';
import { readPod } from '../../../src/placement/objects/pod.ts';
import type { Settings } from '../../../src/placement/settings.ts';
import { whatWasPulled } from '../../../src/placement/wrong-node/judge.ts';
import { digest, failed, known, node, settings } from '../objects.ts';

const BOTH = known('linux/amd64,linux/arm64');
const RUNC = 'exec /app/server: exec format error';
const TOKEN = { name: 'token', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' };
const mount = (mountPath: string) => [TOKEN, { name: 'v', mountPath }];

type Given = {
  readonly message?: string;
  readonly exitCode?: number;
  readonly container?: JsonObject;
  readonly imageID?: string;
  readonly answer?: ImageAnswer;
  readonly settings?: Partial<Settings>;
  readonly metadata?: JsonObject;
  readonly isInit?: true;
  readonly architecture?: string;
};

function find(given: Given) {
  const { message = RUNC, exitCode = 255, container = {}, imageID = `docker.io/library/app@${digest('app')}` } = given;
  const status = {
    name: 'main',
    imageID,
    state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
    lastState: { terminated: { exitCode, reason: 'Error', message } },
  };
  const containers = [{ name: 'main', image: 'app:1', volumeMounts: [TOKEN], ...container }];
  const pod = readPod({
    metadata: { namespace: 'shop', name: 'a', ...given.metadata },
    spec: { nodeName: 'n1', ...(given.isInit ? { initContainers: containers, containers: [] } : { containers }) },
    status: given.isInit ? { initContainerStatuses: [status] } : { containerStatuses: [status] },
  });
  const pulled = whatWasPulled(
    pod,
    settings(given.settings),
    (image) => [image],
    () => given.answer ?? BOTH,
  );
  return findLies(pod, node({ architecture: given.architecture ?? 'arm64' }), pulled, 7);
}

const EXPECTED = {
  digest: digest('app'),
  platform: 'linux/arm64',
  namespace: 'shop',
  image: `app@${digest('app')}`,
  node: 'n1',
  atMs: 7,
};

describe('a container that died with an exec format error', () => {
  const shows: readonly (readonly [what: string, given: Given])[] = [
    ['whose digest has an entry for the node', {}],
    ['as an init container', { isInit: true }],
    ['with a volume elsewhere', { container: { volumeMounts: mount('/data') } }],
    ['with a volume beside its program', { container: { volumeMounts: mount('/app/server.d') } }],
    ['under crun', { message: 'exec container process `/app/server`: Exec format error' }],
    ['under gVisor', { message: 'starting container: failed to load /app/server: exec format error: unknown' }],
    [
      'started by the script of an image',
      { message: '/entry.sh: line 3: /app/server: cannot execute binary file: Exec format error', exitCode: 126 },
    ],
    ['with a text that names no path, without volumes', { message: 'exec user process caused: exec format error' }],
  ];
  for (const [what, given] of shows) {
    it(`shows that its image lies, ${what}`, () => {
      expect(find(given).map(({ showing }) => showing)).to.deep.equal([EXPECTED]);
    });
  }

  const shown: readonly (readonly [what: string, given: Given])[] = [
    ['its program lies in a volume', { container: { volumeMounts: mount('/app/') } }],
    ['its program is a file of a volume', { container: { volumeMounts: mount('/app/server') } }],
    [
      'its command names a program of a volume',
      {
        container: { command: ['/tools/run'], volumeMounts: mount('/tools') },
        message: 'exec /tools/run: exec format error',
      },
    ],
    [
      'its program leaves the directory of the image',
      { message: 'exec /app/../data/x: exec format error', container: { volumeMounts: mount('/data') } },
    ],
    ['its program was made at run time', { message: 'sh: 1: /tmp/tool: Exec format error', exitCode: 126 }],
    [
      'no path is known, and it has volumes',
      { message: 'sh: 1: tool: Exec format error', container: { volumeMounts: mount('/data') } },
    ],
    ['its image was put onto the node by hand', { container: { imagePullPolicy: 'Never' } }],
    ['its status names no digest', { imageID: 'docker.io/library/app:1' }],
    ['its status does not say so (the default terminationMessagePolicy)', { message: '' }],
    ['its digest lacks the architecture of the node', { answer: known('linux/amd64,linux/s390x') }],
    [
      'its node runs it only by architectures.compatible',
      { answer: known('linux/amd64,linux/arm'), settings: { compatible: { arm64: ['arm'] } } },
    ],
    ['its digest has one architecture only', { answer: known('linux/arm64') }],
    ['its digest has one architecture for this OS', { answer: known('linux/arm64,windows/amd64') }],
    ['nothing is known of its digest', { answer: failed(10) }],
    [
      'images.overrides speaks for its image',
      { settings: { overrides: [{ pattern: 'app*', architectures: ['arm64', 'amd64'] }] } },
    ],
    ['the pod states its architectures', { metadata: { annotations: { 'archaware.dev/architectures': 'arm64' } } }],
  ];
  for (const [what, given] of shown) {
    it(`shows nothing if ${what}`, () => {
      expect(find(given)).to.deep.equal([]);
    });
  }

  it('has an Event that says what follows', () => {
    const [lie] = find({});
    if (lie === undefined) throw new Error('nothing found');
    expect(imageLiesNote(lie, true)).to.equal(
      `image app@${digest('app')} has linux/arm64, but node n1 refused the program of container main (exec format error); new pods ` +
        'with this digest no longer count linux/arm64, as long as another architecture is left; push a corrected image, or state its ' +
        'architectures in images.overrides',
    );
    expect(imageLiesNote(lie, false)).to.include('images.lies is report, so linux/arm64 still counts for new pods');
  });
});
