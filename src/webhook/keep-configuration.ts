import type { Clock } from '../kit/clock.ts';
import { messageOf } from '../kit/errors.ts';
import type { JsonObject } from '../kit/json.ts';
import type { Operation } from '../kit/json-patch.ts';
import type { ApiClient } from '../kube/api-client.ts';
import { isConflict, isGone, isRefusal } from '../kube/errors.ts';
import { find } from '../kube/read.ts';
import { FIELD_MANAGER, WEBHOOK_CONFIGURATION } from '../names.ts';
import { type CertificateSource, createProblemReporter, type OnProblem } from './certificates/source.ts';
import { configurationPatch, isInjected, trustsAny, type Wanted } from './configuration.ts';
import { maySwitch, type Paths, type Replicas } from './paths.ts';

export type KeepConfigurationOptions = {
  readonly client: ApiClient;
  readonly source: Pick<CertificateSource, 'current' | 'onChange'>;
  readonly paths: Paths;
  /** Says whether other replicas may still serve another path. */
  readonly replicas: () => Replicas;
  /** Whether the lease is fresh at this moment: only the leader writes. */
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly onProblem: OnProblem;
  /** Called with a problem of the path. */
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
/** Checks in a row (60 of 5 s: five minutes) in which a leader may be unable to write its path before a problem is reported. */
const PATIENCE_WITH_ROLLOUTS = 60;
/** How many checks in a row must find no secret path before a problem is reported: a leader of an earlier version creates none. */
const PATIENCE_FOR_PATH = 12;

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
  const now = clock.monotonic;
  let known: { readonly path: string | undefined; readonly since: number } = { path: undefined, since: now() };
  let seenPath: string | undefined;
  let leadsSince: number | undefined;

  /** Checks once and reports problems. Throws if it cannot read or write. */
  async function look(): Promise<void> {
    const configuration = await readConfiguration(client, signal);
    paths.saw(configuration);
    const path = paths.wanted();
    if (path !== known.path) known = { path, since: now() };
    leadsSince = mayWrite() ? (leadsSince ?? now()) : undefined;
    if (path === undefined) {
      reportPath(
        'the webhook has no secret path, so every client that reaches its port can ask for reviews: set webhook.path (with self-signed certificates the leader creates a path)',
        PATIENCE_FOR_PATH,
      );
    }
    if (leadsSince === undefined) return report(undefined);
    if (configuration === undefined) {
      return report(
        `MutatingWebhookConfiguration ${WEBHOOK_CONFIGURATION} not found, so the API server does not call the webhook: apply the manifest that contains it`,
      );
    }
    await update(configuration, path);
  }

  async function update(configuration: JsonObject, path: string | undefined): Promise<void> {
    const ca = source.current()?.ca;
    const isInjectable = ca !== undefined && isInjected(configuration);
    const lacksCa = configurationPatch(configuration, { ca }).length > 0;
    const lacksPath = configurationPatch(configuration, { path }).length > 0;
    if (path !== undefined && !lacksPath) seenPath = path;
    const isCalled = ca === undefined || trustsAny(configuration);
    const times = { knownForMs: now() - known.since, leadingForMs: now() - (leadsSince ?? now()) };
    const may = maySwitch({ isCalled, wasSeen: seenPath === path, ...times, replicas: options.replicas() });
    const wanted = { ca: isInjectable ? undefined : ca, path: may ? path : undefined };
    const patch = configurationPatch(configuration, wanted);
    if (patch.length > 0 && mayWrite()) await write(configuration, patch, wanted);
    if (path !== undefined && (may || !lacksPath)) reportPath(undefined);
    else if (path !== undefined) {
      reportPath(
        `${WEBHOOK_CONFIGURATION} still has another path: a rollout may be stuck, with replicas of another version`,
        PATIENCE_WITH_ROLLOUTS,
      );
    }
    if (lacksCa && isInjectable) {
      return report(
        `cert-manager is configured to fill in the caBundle of ${WEBHOOK_CONFIGURATION}, but that caBundle does not verify the webhook's certificate`,
        PATIENCE_WITH_OTHERS,
      );
    }
    report(undefined);
  }

  async function write(configuration: JsonObject, patch: readonly Operation[], { ca, path }: Wanted): Promise<void> {
    try {
      await send(patch);
    } catch (error) {
      // The next check reads the configuration again.
      if (isConflict(error) || isGone(error)) return;
      // An admission policy of an earlier version allows the bundle but not the path.
      const rest = configurationPatch(configuration, { ca });
      if (path === undefined || rest.length === 0 || !isRefusal(error)) throw error;
      await send(rest);
      throw error;
    }
  }

  const send = (body: readonly Operation[]) =>
    client.request('patch', `${PATH}?fieldManager=${FIELD_MANAGER}`, {
      body,
      contentType: 'application/json-patch+json',
      metadataOnly: true,
      signal,
    });

  let wake = new AbortController();
  // The API server cannot call before it trusts a new certificate, so the next check follows at once.
  source.onChange(() => wake.abort());
  while (!signal.aborted) {
    wake = new AbortController();
    try {
      await look();
    } catch (error) {
      if (signal.aborted) return;
      const reason = messageOf(error);
      report(`caBundle and path of ${WEBHOOK_CONFIGURATION} cannot be updated: ${reason}`, PATIENCE);
    }
    options.onLooked();
    await clock.delay(LOOK_MS, AbortSignal.any([signal, wake.signal]));
  }
}
