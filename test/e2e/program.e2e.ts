import { describeProgram } from '../cli/both/both.ts';
import { manifestOfObserve } from '../support/manifest.ts';
import { startWorld } from './support/world.ts';

describeProgram('on the real control plane', async ({ manifest, ...wanted } = {}) =>
  startWorld({ ...wanted, ...(manifest && { manifest: await manifestOfObserve() }) }),
);
