import type { createRefusedCreations } from '../../controllers/refused-creations.ts';
import type { Watches } from '../../controllers/watches.ts';
import type { Webhook } from '../start-webhook.ts';
import type { Running } from './running.ts';
import type { rememberSaid } from './said.ts';
import type { Terms } from './terms.ts';

/** What a replica is made of, beside its base. */
export type Parts = {
  readonly running: Running;
  readonly watches: Watches;
  readonly events: ReturnType<typeof rememberSaid>;
  readonly refused: Pick<ReturnType<typeof createRefusedCreations>, 'refused' | 'refusing'>;
  readonly admission: Webhook | undefined;
  readonly terms: Terms;
  /** Whether the present configuration file is in use. */
  configurationInUse: boolean;
};
