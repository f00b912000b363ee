import { cut } from '../../kit/cut.ts';

/** An image of a container or an image volume. The same image with two pull policies counts as two. */
export type PodImage = {
  readonly image: string;
  readonly pullPolicy: string;
  /** The name of the volume (`volumes[].image`) that uses the image; absent for an image of a container. */
  readonly volume?: string;
};

/** No image can have a longer name. */
const LONGEST_IMAGE = 800;

/** Returns the name of an image as it is kept. One that is too long is cut to one character more than allowed: it stays invalid. */
export function imageName(name: string): string {
  return cut(name, LONGEST_IMAGE + 1);
}
