/**
 * Makes and publishes a release; hack/release.sh starts it, and its --help says how. The phases, in order:
 *
 *   1 check   everything that can be known before anything is built; all problems are listed together
 *   2 build   image, chart, manifests, executables, package, notes and sums, from a clean clone of the tag
 *   3 push    image and chart, by digest, without a tag
 *   4 sign    image, chart and sums; SBOM and provenance become attestations of the image
 *   5 tag     last, so that a tag is never seen without its signature
 */
export {};
