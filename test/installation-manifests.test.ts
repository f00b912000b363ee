import { expect } from 'chai';
import { at, object, objects, text } from './simulator/json.ts';
import { manifestObjects } from './support/manifest.ts';

/** Of the single manifests, and of the sources of the overlays. */
const OBJECTS = manifestObjects().filter(([file]) => !/^(?:helm|krew)/.test(file));
const ofKind = (kind: string) => OBJECTS.filter(([, found]) => found.kind === kind);

describe('the manifests', () => {
  it('label every ClusterRoleBinding, because commands find the installation by them', () => {
    const bindings = ofKind('ClusterRoleBinding');
    expect(bindings).to.have.lengthOf.at.least(10);
    for (const [file, binding] of bindings) {
      expect(at(binding, 'metadata', 'labels'), file).to.deep.equal({
        'app.kubernetes.io/name': 'archaware-controller',
      });
    }
  });

  it('run every Deployment as a service account that these bindings name', () => {
    const accounts = ofKind('ClusterRoleBinding').flatMap(([, binding]) =>
      objects(binding.subjects).map(({ namespace, name }) => `${text(namespace)}/${text(name)}`),
    );
    for (const [file, deployment] of ofKind('Deployment')) {
      const account = text(at(deployment, 'spec', 'template', 'spec', 'serviceAccountName'));
      expect(accounts, file).to.include(`${text(at(deployment, 'metadata', 'namespace'))}/${account}`);
    }
  });

  it('wait for the answer to a probe for as long as its period, so that a busy replica is neither left out nor restarted', () => {
    for (const [file, deployment] of ofKind('Deployment')) {
      const [container] = objects(at(deployment, 'spec', 'template', 'spec', 'containers'));
      for (const name of ['readinessProbe', 'livenessProbe']) {
        const { periodSeconds, timeoutSeconds } = object(container?.[name]);
        expect(Number(timeoutSeconds), `${file} ${name}`).to.be.above(1).and.to.equal(periodSeconds);
      }
    }
  });

  it('bind archaware-reader to nobody, and let it read no Secret and write nothing', () => {
    const named = [...ofKind('ClusterRoleBinding'), ...ofKind('RoleBinding')].map(([, binding]) =>
      text(at(binding, 'roleRef', 'name')),
    );
    expect(named).not.to.include('archaware-reader');
    const readers = ofKind('ClusterRole').filter(([, role]) => at(role, 'metadata', 'name') === 'archaware-reader');
    expect(readers).to.have.lengthOf.at.least(4);
    for (const [file, role] of readers) {
      const rules = objects(role.rules);
      const verbs = new Set(rules.flatMap(({ verbs: found }) => (Array.isArray(found) ? found.map(String) : [])));
      expect([...verbs].toSorted(), file).to.deep.equal(['get', 'list', 'watch']);
      expect(JSON.stringify(rules), file).not.to.match(/secrets|proxy|"\*"/);
    }
  });
});
