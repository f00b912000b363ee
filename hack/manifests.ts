/** Writes the architectures into the policies of manifests/kustomize, and generates the single manifests from it: `tsx hack/manifests.ts`. */
import { policies } from './manifests/policies.ts';
import { singleManifests } from './manifests/single.ts';
import { writeFiles } from './write-between.ts';

await writeFiles(await policies());
// They are made from the policies.
await writeFiles(await singleManifests());
