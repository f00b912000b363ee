/** An image of a container or an image volume. The same image with two pull policies counts as two. */
export type PodImage = {
  readonly image: string;
  readonly pullPolicy: string;
  /** The name of the volume (`volumes[].image`) that uses the image; absent for an image of a container. */
  readonly volume?: string;
  /** Marks the first image beyond the limit. Neither this image nor any after it is looked up. */
  readonly isSurplus?: true;
};
