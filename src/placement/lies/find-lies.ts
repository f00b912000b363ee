import { cut } from '../../kit/cut.ts';
import { type Node, nodeArchitecture } from '../nodes/node.ts';
import type { Pod } from '../objects/pod.ts';
import type { Pulled } from '../wrong-node/judge.ts';
import type { Showing } from './lies.ts';

const LONGEST_IMAGE = 256;

/** What a container of a pod has shown of its image. */
export type FoundLie = { readonly container: string; readonly showing: Showing };

/**
 * Returns what the broken containers of a pod show of their images: the kernel of the node refused a program of the image, although
 * the index that was pulled has an entry for this very architecture. An image with one architecture only shows nothing that could be
 * used, and `images.overrides` and the annotation of the pod's author are words that count more.
 */
export function findLies(
  { broken, namespace, os }: Pick<Pod, 'broken' | 'namespace' | 'os'>,
  node: Node,
  pulled: Pick<Pulled, 'images'>,
  nowMs: number,
): readonly FoundLie[] {
  const architecture = nodeArchitecture(node);
  if (architecture === undefined) return [];
  const platform = `${os}/${architecture}`;
  return (broken ?? []).flatMap((container) => {
    const image = pulled.images.get(container);
    const isShown = container.trouble === 'exec-format-error' && container.isOfImage === true;
    if (!isShown || image === undefined || image.isStated === true || container.pulled === undefined) return [];
    const own = image.platforms.filter((each) => each.startsWith(`${os}/`));
    if (own.length < 2 || !own.includes(platform)) return [];
    const { image: name } = container.pulled;
    const digest = name.slice(name.lastIndexOf('@') + 1);
    const showing = {
      digest,
      platform,
      namespace,
      image: cut(name, LONGEST_IMAGE),
      node: node.name,
      atMs: Math.round(nowMs),
    };
    return [{ container: container.name, showing }];
  });
}

/** Returns the text of the Event about an image that lies. `isLearned`: the platform does not count for new pods. */
export function imageLiesNote({ container, showing }: FoundLie, isLearned: boolean): string {
  const { image, platform, node } = showing;
  const effect = isLearned
    ? `new pods with this digest no longer count ${platform}, as long as another architecture is left`
    : `images.lies is report, so ${platform} still counts for new pods`;
  return (
    `image ${image} has ${platform}, but node ${node} refused the program of container ${container} (exec format error); ${effect}; ` +
    'push a corrected image, or state its architectures in images.overrides'
  );
}
