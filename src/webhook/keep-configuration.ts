import type { Clock } from '../kit/clock.ts';
import { messageOf } from '../kit/errors.ts';
import type { JsonObject } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isConflict, isGone } from '../kube/errors.ts';
import { find } from '../kube/read.ts';
import { FIELD_MANAGER, WEBHOOK_CONFIGURATION } from '../names.ts';
import { type CertificateSource, createProblemReporter, type OnProblem } from './certificates/source.ts';
import { configurationPatch, isInjected, lackingName } from './configuration.ts';
import type { Paths } from './paths.ts';

export type KeepConfigurationOptions = {
  readonly client: ApiClient;
  readonly source: Pick<CertificateSource, 'current' | 'onChange'>;
  readonly paths: Paths;
  /** Whether the lease is fresh at this moment: only the leader writes. */
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly onProblem: OnProblem;
  readonly onPathProblem: OnProblem;
  /** Called after each check, also after a failed one. */
  readonly onLooked: () => void;
  readonly signal: AbortSignal;
};

const PATH = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`;
const LOOK_MS = 5000;
/** How many checks in a row must fail before a problem is reported. */
const PATIENCE = 3;
/** How many checks in a row must find a bundle that cert-manager did not fill in before a problem is reported. */
const PATIENCE_WITH_OTHERS = 12;
/** How many checks in a row must find no secret path before a problem is reported: a leader of an earlier version creates none. */
const PATIENCE_FOR_PATH = 12;

const NO_PATH =
  'the webhook has no secret path, so every client that reaches its port can ask for reviews: set webhook.path (with self-signed certificates the leader creates a path)';
const NO_CONFIGURATION = `MutatingWebhookConfiguration ${WEBHOOK_CONFIGURATION} not found, so the API server does not call the webhook: apply the manifest that contains it`;
const NOT_INJECTED = `cert-manager is configured to fill in the caBundle of ${WEBHOOK_CONFIGURATION}, but that caBundle does not verify the webhook's certificate`;

/** Reads the MutatingWebhookConfiguration of the webhook; undefined if there is none. */
export async function readConfiguration(client: ApiClient, signal?: AbortSignal): Promise<JsonObject | undefined> {
  return find(client, PATH, signal);
}

/**
 * Checks the webhook's configuration every few seconds until the signal aborts. If this replica leads, it writes the bundle of the
 * serving certificate and the secret path into the configuration. Both go into one patch, so that no other path is called once the
 * certificate is trusted. The bundle is left alone if cert-manager is asked to fill it in, or if the source has none.
 */
export async function keepConfiguration(options: KeepConfigurationOptions): Promise<void> {
  const { client, source, paths, mayWrite, clock, onProblem, onPathProblem, signal } = options;
  const report = createProblemReporter(onProblem);
  const reportPath = createProblemReporter(onPathProblem);

  /** Checks once and reports problems. Throws if it cannot read or write. */
  async function look(): Promise<void> {
    const configuration = await readConfiguration(client, signal);
    paths.saw(configuration);
    const path = paths.wanted();
    reportPath(path === undefined ? NO_PATH : undefined, PATIENCE_FOR_PATH);
    if (!mayWrite()) return;
    if (configuration === undefined) return report(NO_CONFIGURATION);
    const serving = source.current();
    const ca = serving?.ca;
    const isForOthers = ca !== undefined && isInjected(configuration);
    const patch = configurationPatch(configuration, { ca: isForOthers ? undefined : ca, path });
    if (patch.length > 0 && mayWrite()) await write(patch);
    const isMissing = isForOthers && configurationPatch(configuration, { ca }).length > 0;
    if (isMissing) return report(NOT_INJECTED, PATIENCE_WITH_OTHERS);
    const lacking = serving && lackingName(configuration, serving.cert);
    report(lacking && `tls.crt lacks the name by which the API server calls the webhook: ${lacking}`, PATIENCE);
  }

  async function write(body: readonly Operation[]): Promise<void> {
    try {
      const path = `${PATH}?fieldManager=${FIELD_MANAGER}`;
      await client.request('patch', path, { body, metadataOnly: true, signal });
    } catch (error) {
      // The next check reads the configuration again.
      if (!isConflict(error) && !isGone(error)) throw error;
    }
  }

  let wake = new AbortController();
  // The API server cannot call before it trusts a new certificate, so the next check follows at once.
  source.onChange(() => wake.abort());
  while (!signal.aborted) {
    wake = new AbortController();
    try {
      await look();
    } catch (error) {
      if (signal.aborted) return;
      report(`caBundle and path of ${WEBHOOK_CONFIGURATION} cannot be updated: ${messageOf(error)}`, PATIENCE);
    }
    options.onLooked();
    await clock.delay(LOOK_MS, AbortSignal.any([signal, wake.signal]));
  }
}
