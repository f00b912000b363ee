import { expect } from 'chai';
import {
  ANYONE,
  failureOf,
  type Harness,
  never,
  putImage,
  reply,
  type ScriptedServer,
  startResolver,
  startServer,
  stopAfterEach,
} from './server.ts';

const REASON =
  `kubelets pull it as the pod's service account (credential provider "ecr" with tokenAttributes), and archaware has no such token: ` +
  `give it a pull secret or credentials.directory, or state the architectures in images.overrides or in the annotation ` +
  `archaware.dev/architectures`;

describe('an image that kubelets pull as the service account of its pod (KEP-4412)', () => {
  let server: ScriptedServer;
  let harness: Harness;
  const asked: string[] = [];
  beforeEach(async () => {
    asked.length = 0;
    server = await startServer();
    const providerForPods = (name: string) => {
      asked.push(name);
      return name.endsWith('/private') ? 'ecr' : undefined;
    };
    harness = startResolver([server.host], { providerForPods });
  });
  stopAfterEach();
  const resolve = (repository: string) => harness.resolver.resolve(`${server.host}/${repository}:v1`, ANYONE, never);
  const failure = (repository: string) => failureOf(resolve(repository));

  for (const status of [401, 403]) {
    it(`is reported with that reason if the registry answers ${status}, and stays denied`, async () => {
      server.on('/v2/private/manifests/v1', reply(status));
      const error = await failure('private');
      expect(error.code).to.equal('denied');
      expect(error.message).to.match(/; kubelets pull it/);
      expect(error.message.endsWith(REASON), error.message).to.equal(true);
      expect(harness.failure(`${server.host}/private:v1`, ANYONE)?.error.message).to.equal(error.message);
    });
  }

  it('is no reason for another image that is denied, or for another failure', async () => {
    server.on('/v2/other/manifests/v1', reply(403));
    expect((await failure('other')).message).not.to.include('kubelets');
    const missing = await failure('private');
    expect([missing.code, missing.message.includes('kubelets')]).to.deep.equal(['not-found', false]);
  });

  it('is no reason if the image can be read', async () => {
    putImage(server, 'private', 'arm64', 'v1');
    expect((await resolve('private')).platforms).to.deep.equal([{ os: 'linux', architecture: 'arm64' }]);
    expect(asked).to.deep.equal([]);
  });
});
