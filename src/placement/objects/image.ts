/** An image that a container or an image volume names, once for each pull policy. */
export type PodImage = {
  readonly image: string;
  readonly pullPolicy: string;
  /** The name of the volume (`volumes[].image`) that names it; absent where a container does. */
  readonly volume?: string;
  /** The first one after those that are asked about: neither it nor those after it are asked about. */
  readonly isSurplus?: true;
};
