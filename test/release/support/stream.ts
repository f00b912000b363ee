/** Changes of an installed release while pods come all the time. */
import { expect } from 'chai';
import { at, listAt, textAt } from '../../../hack/cluster/json.ts';
import { streamJudged } from '../../e2e/support/judged-stream.ts';
import { eventuallyOn } from '../../e2e/support/real-checks.ts';
import { isGoing } from '../../support/objects.ts';
import type { Rehearsal } from './rehearsal.ts';

const PODS_PER_SECOND = 5;
const NAMESPACE = 'archaware';
const DEPLOYMENT = 'archaware-controller';

/** Makes the change while pods of each architecture are created; none may be lost, or go to a node that cannot run it. */
export async function underLoad(
  { world, node, own, other, fake }: Rehearsal,
  what: string,
  namespace: string,
  isReviewed: boolean,
  change: () => Promise<unknown>,
): Promise<void> {
  const kinds = [
    { image: world.image(`program-${own}`), nodes: [node.name] },
    { image: world.image(`index-${other}`), nodes: [fake] },
    { image: world.image('index-both'), nodes: [node.name, fake] },
  ];
  const stream = streamJudged(world, namespace, kinds, PODS_PER_SECOND);
  const begun = performance.now();
  const failure = await change().catch((error: unknown) => error);
  const seconds = Math.round((performance.now() - begun) / 1000);
  const { created, unreviewed, wrong, pending } = await stream.stop();
  const reviews = isReviewed ? `, ${unreviewed.length} not reviewed` : '';
  console.log(
    `        ${what}: ${seconds} s, ${created} pods, ${wrong.length} on a wrong node, ${pending.length} on none${reviews}`,
  );
  if (failure instanceof Error) throw failure;
  expect(wrong, 'on a wrong node').to.deep.equal([]);
  expect(pending, 'on no node').to.deep.equal([]);
  if (isReviewed) expect(unreviewed, 'not reviewed').to.deep.equal([]);
}

/** Waits until only pods of this version run, and checks that they are what was released. */
export async function runsVersion(rehearsal: Rehearsal, version: string): Promise<void> {
  const { world, release, must } = rehearsal;
  const { image, imageDigest } = release(version);
  await eventuallyOn(world)(`two replicas of ${version}`, async () => {
    const pods = (await world.list('Pod', NAMESPACE)).filter(
      (one) => !isGoing(one) && at(one, 'metadata', 'labels', 'app.kubernetes.io/name') === DEPLOYMENT,
    );
    const states = pods.map((one) => {
      const status = listAt(one, 'status', 'containerStatuses')[0];
      const isReady = at(status, 'ready') === true;
      // The digest that the container runtime found, not the one that the manifest asks for.
      return isReady && at(status, 'imageID') === `${image}@${imageDigest}`;
    });
    return states.length === 2 && states.every((state) => state);
  });
  const deployment = await world.get('Deployment', NAMESPACE, DEPLOYMENT);
  const name = textAt(deployment, 'spec', 'template', 'spec', 'containers', 0, 'image');
  expect(name).to.match(new RegExp(`^${image}(:${version})?@${imageDigest}$`));
  const exec = `kubectl -n ${NAMESPACE} exec deployment/${DEPLOYMENT} -- archaware`;
  expect((await must(`${exec} --version`)).trim()).to.equal(version);
}
