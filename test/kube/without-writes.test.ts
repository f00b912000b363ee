import { expect } from 'chai';
import type { ApiVerb } from '../../src/kube/api-client.ts';
import { createClientWithoutWrites, WriteRefusedHereError } from '../../src/kube/without-writes.ts';
import { clientOf } from '../support/client-of.ts';

const POD = '/api/v1/namespaces/shop/pods/web';
const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events';

describe('the client of a mode that writes nothing', () => {
  const rows: [verb: ApiVerb, path: string, isSent: boolean][] = [
    ['get', POD, true],
    ['list', '/api/v1/pods?limit=500', true],
    ['create', `${EVENTS}?fieldManager=archaware-controller`, true],
    ['create', EVENTS, true],
    ['patch', `${EVENTS}/web.17c1?fieldManager=archaware-controller`, false],
    ['update', `${EVENTS}/web.17c1`, false],
    ['delete', `${EVENTS}/web.17c1`, false],
    ['patch', POD, false],
    ['delete', POD, false],
    ['create', `${POD}/eviction`, false],
    ['patch', '/apis/apps/v1/namespaces/shop/daemonsets/agent', false],
    ['create', '/api/v1/namespaces/archaware/secrets', false],
    ['update', '/api/v1/namespaces/archaware/secrets/archaware-controller-webhook', false],
    // Only the path decides: a name that looks like the one of Events does not.
    ['patch', `/api/v1/namespaces/shop/pods/events?x=${EVENTS}`, false],
    ['create', `/api/v1/nodes?x=${EVENTS}`, false],
  ];
  for (const [verb, path, isSent] of rows) {
    it(`${isSent ? 'sends' : 'refuses'} ${verb} ${path}`, async () => {
      const sent: string[] = [];
      const client = clientOf({ request: async (...request) => sent.push(request.slice(0, 2).join(' ')) });
      const result = await createClientWithoutWrites(client)
        .request(verb, path)
        .catch((error: unknown) => error);
      expect(sent).to.deep.equal(isSent ? [`${verb} ${path}`] : []);
      expect(result instanceof WriteRefusedHereError).to.equal(!isSent);
    });
  }
});
