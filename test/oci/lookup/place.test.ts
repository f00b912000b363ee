import { expect } from 'chai';
import { createRoutes } from '../../../src/oci/endpoints/mirrors.ts';
import { targetOf } from '../../../src/oci/lookup/health.ts';
import { parseReference } from '../../../src/oci/reference.ts';

describe('the place of an image', () => {
  const { endpointsOf } = createRoutes({
    mirrors: {
      'docker.io': { endpoints: ['h.test/hub', 'c.test'], fallback: true, credentials: 'mirror' },
      'quay.io': { endpoints: ['c.test'], fallback: true, credentials: 'mirror' },
    },
    insecure: [],
    hosts: () => undefined,
  });
  const places = (image: string) => {
    const reference = parseReference(image);
    return endpointsOf(reference).map((endpoint) => targetOf(endpoint, reference).place);
  };
  const names = (image: string) =>
    places(image).map(({ repository, project, host }) => [repository.name, project.name, host.name].join(' '));

  const rows: [image: string, names: string[]][] = [
    ['r.example.com/team/app:1', ['team/app team r.example.com']],
    ['r.example.com/app', ['app app r.example.com']],
    ['r.example.com/group/sub/app@sha256:'.concat('0'.repeat(64)), ['group/sub/app group r.example.com']],
    ['nginx', ['hub/library/nginx hub h.test/hub', 'library/nginx library c.test', 'library/nginx library docker.io']],
  ];
  for (const [image, expected] of rows) {
    it(`of ${image} is ${expected.join(', then ')}`, () => {
      expect(names(image)).to.deep.equal(expected);
    });
  }

  it('shares its project with another repository, and its host with another project', () => {
    const [one, two, three] = ['r.example.com/a/x:1', 'r.example.com/a/y:2', 'r.example.com/b/x:1'].map(
      (image) => places(image)[0] ?? expect.fail(),
    );
    expect(one?.repository.key).to.not.equal(two?.repository.key);
    expect(one?.project.key).to.equal(two?.project.key);
    expect(one?.project.key).to.not.equal(three?.project.key);
    expect(one?.host.key).to.equal(three?.host.key);
  });

  it('at a mirror of several registries has another project for each of them', () => {
    const [hub, quay] = [places('docker.io/library/x')[1], places('quay.io/library/x')[0]];
    expect(hub?.host.key).to.equal(quay?.host.key);
    expect(hub?.project.key).to.not.equal(quay?.project.key);
    expect(hub?.repository.key).to.not.equal(quay?.repository.key);
  });
});
