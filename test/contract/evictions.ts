import { expect } from 'chai';
import { at, type JsonObject, objects } from '../simulator/json.ts';
import { type Context, createPod, done, NAMESPACE, NOWHERE, PODS, refused } from './context.ts';

const BUDGETS = `/apis/policy/v1/namespaces/${NAMESPACE}/poddisruptionbudgets`;
const JOBS = `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`;

export function describeEvictions(context: () => Context): void {
  const evict = (name: string, deleteOptions: JsonObject = {}) => {
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace: NAMESPACE },
      deleteOptions,
    };
    return context().client.request('POST', `${PODS}/${name}/eviction`, eviction);
  };
  const running = async (name: string, labels: JsonObject) => {
    await createPod(context(), name, {}, { labels });
    return context().cluster.waitFor(`${name} to run`, async () => {
      const pod = done(await context().client.request('GET', `${PODS}/${name}`));
      return at(pod, 'status', 'phase') === 'Running' && pod;
    });
  };
  const protect = async (name: string, matchLabels: JsonObject, currentHealthy: number) => {
    const body = { metadata: { name }, spec: { minAvailable: 1, selector: { matchLabels } } };
    done(await context().client.request('POST', BUDGETS, body));
    await context().cluster.waitFor(`${name} to be observed`, async () => {
      const budget = done(await context().client.request('GET', `${BUDGETS}/${name}`));
      const { status } = budget;
      return at(status, 'observedGeneration') === 1 && at(status, 'currentHealthy') === currentHealthy;
    });
  };
  const gone = (name: string) =>
    context().cluster.waitFor(`${name} to be gone`, async () => {
      const { status } = await context().client.request('GET', `${PODS}/${name}`);
      return status === 404;
    });

  it('is refused with 429 by a budget, without a time for the next try', async () => {
    await running('protected', { evict: 'protected' });
    await protect('protected', { evict: 'protected' }, 1);
    const answer = await evict('protected');
    const status = refused(answer, 429, 'TooManyRequests');
    expect(status.message).to.equal("Cannot evict pod as it would violate the pod's disruption budget.");
    expect(objects(at(status, 'details', 'causes'))).to.deep.equal([
      {
        reason: 'DisruptionBudget',
        message: 'The disruption budget protected needs 1 healthy pods and has 1 currently',
      },
    ]);
    expect(answer.headers['retry-after']).to.equal(undefined);
  });

  it('removes a Pending pod despite its budget', async () => {
    await createPod(context(), 'pending-protected', NOWHERE, { labels: { evict: 'pending' } });
    await protect('pending', { evict: 'pending' }, 0);
    expect(done(await evict('pending-protected')).status).to.equal('Success');
    await gone('pending-protected');
  });

  it('removes a gated pod', async () => {
    await createPod(context(), 'gated-evicted', { schedulingGates: [{ name: 'archaware.dev/architecture' }] });
    done(await evict('gated-evicted'));
    await gone('gated-evicted');
  });

  it('removes the pod with the given uid and no other', async () => {
    const pod = await running('meant', { evict: 'meant' });
    const wrong = refused(await evict('meant', { preconditions: { uid: 'other' } }), 409, 'Conflict');
    expect(wrong.message).to.contain('the UID in the precondition (other) does not match the UID in record');
    done(await evict('meant', { preconditions: { uid: at(pod, 'metadata', 'uid') } }));
    await gone('meant');
    refused(await evict('meant'), 404, 'NotFound');
  });

  it('answers 500 if two budgets apply', async () => {
    await running('twofold', { evict: 'twofold' });
    await protect('twofold-1', { evict: 'twofold' }, 1);
    await protect('twofold-2', { evict: 'twofold' }, 1);
    expect((await evict('twofold')).status).to.equal(500);
  });

  it('is allowed while enough others are healthy, and a ReplicaSet creates the pod again', async () => {
    const labels = { evict: 'replicas' };
    const containers = [{ name: 'app', image: 'registry.example.com/app:1' }];
    const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers } };
    const set = { metadata: { name: 'replicas' }, spec: { replicas: 2, selector: { matchLabels: labels }, template } };
    done(await context().client.request('POST', `/apis/apps/v1/namespaces/${NAMESPACE}/replicasets`, set));
    await protect('replicas', labels, 2);
    const healthy = async () => {
      const pods = objects(done(await context().client.request('GET', `${PODS}?labelSelector=evict%3Dreplicas`)).items);
      return pods.length === 2 && pods.every((pod) => at(pod, 'status', 'phase') === 'Running') && pods;
    };
    const [pod] = await context().cluster.waitFor('two pods', healthy);
    const name = String(at(pod, 'metadata', 'name'));
    done(await evict(name, { preconditions: { uid: at(pod, 'metadata', 'uid') } }));
    await gone(name);
    await context().cluster.waitFor('two pods again', healthy);
  });

  it('fails a Job that may not fail', async () => {
    const containers = [{ name: 'app', image: 'registry.example.com/app:1' }];
    const template = { spec: { restartPolicy: 'Never', containers, ...NOWHERE } };
    done(
      await context().client.request('POST', JOBS, {
        metadata: { name: 'fragile' },
        spec: { backoffLimit: 0, template },
      }),
    );
    const name = await context().cluster.waitFor('the pod of the Job', async () => {
      const [pod] = objects(
        done(await context().client.request('GET', `${PODS}?labelSelector=job-name%3Dfragile`)).items,
      );
      return pod && String(at(pod, 'metadata', 'name'));
    });
    done(await evict(name));
    await context().cluster.waitFor('the Job to have failed', async () =>
      objects(at(done(await context().client.request('GET', `${JOBS}/fragile`)), 'status', 'conditions')).some(
        ({ type, status }) => type === 'Failed' && status === 'True',
      ),
    );
  });
}
