import type { ImageSource } from '../../controllers/image-source.ts';
import { createPublisher } from '../../controllers/publish/publisher.ts';
import type { Watches } from '../../controllers/watches.ts';
import { createTurns } from '../../kit/fairness/event-loop.ts';
import { whyNothingIsPublished } from '../../placement/publish/known-images.ts';
import type { Base } from './base.ts';
import type { Running } from './running.ts';

/** Creates what publishes known images while this replica leads. Its `images` note which images are used. */
export function createPublishing(base: Base, running: Running, watches: Watches, refusing: () => Iterable<string>) {
  const { client, clock, leaseNamespace: namespace, loops, log } = base;
  const { images, mayWrite, settings } = running;
  function* inUse(): Iterable<string> {
    for (const pod of watches.pods.store.values()) for (const { image } of pod.images) yield image;
  }
  const publisher = createPublisher({
    ...{ client, namespace, mayWrite, clock, turns: createTurns(clock), images, settings, refusing, inUse },
    servesDaemonSets: () => loops.includes('daemonsets') && settings().daemonSets === 'patch',
    whyNot: () => whyNothingIsPublished(settings(), loops),
    onError: (err) => log.warn({ err }, 'known images not published: new pods are placed by the controller alone'),
  });
  running.resolver.onSettled(publisher.settled);
  const noting: ImageSource = {
    ...images,
    // Every decision asks for the names of its images first.
    namesOf(image) {
      publisher.used(image);
      return images.namesOf(image);
    },
  };
  return { images: noting, publication: publisher.publication, run: publisher.run };
}
