/** What the heads of the single manifests say, and hack/release says otherwise in a release. */

/** In a checkout there is the bundle; people with a released manifest have the plug-in. */
export const CLEAN = 'node dist/main.js clean';

/** Stays true when releases exist: a file of the repository never names a real image. */
export const FROM_SOURCES = `# Generated from manifests/kustomize (hack/manifests.ts). This file of the repository names an image that cannot be pulled; the file of
# a release names the released one. hack/build.sh builds an image of your own: docs/install.md.`;

/** The comment above the name of the image, in manifests/kustomize/base/deployment.yaml. */
export const NOT_PULLED =
  '# This name cannot be pulled: a release has the name of its image here, and hack/build.sh prints the command that sets yours.';
