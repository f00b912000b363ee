import type { ApiClient } from '../kube/client.ts';
import type { Clock } from '../kube/clock.ts';
import { isConflict, isGone } from '../kube/errors.ts';
import { FIELD_MANAGER, WEBHOOK_CONFIGURATION } from '../names.ts';
import { isObject, type JsonObject } from '../placement/json.ts';
import type { Operation } from '../placement/patch.ts';
import { caBundlePatch, isInjected } from './ca-bundle.ts';
import { type CertificateSource, createTeller, type OnProblem } from './certificates.ts';

export type KeepCaBundleOptions = {
  readonly client: ApiClient;
  readonly source: Pick<CertificateSource, 'current' | 'onChange'>;
  /** Whether the lease is fresh at this moment: only the leader writes. */
  readonly mayWrite: () => boolean;
  readonly clock: Clock;
  readonly onProblem: OnProblem;
  readonly signal: AbortSignal;
};

const PATH = `/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/${WEBHOOK_CONFIGURATION}`;
const LOOK_MS = 5000;
/** Failures in a row before they are a problem. */
const PATIENCE = 3;
/** Looks in a row at bundles that cert-manager was to fill in, before it is a problem that it did not. */
const PATIENCE_WITH_OTHERS = 12;

/** Reads the configuration by which the API server calls us; undefined where there is none. */
export async function readConfiguration(client: ApiClient, signal?: AbortSignal): Promise<JsonObject | undefined> {
  try {
    const found = await client.request('get', PATH, { signal });
    return isObject(found) ? found : undefined;
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * Sees to it that the API server trusts what we serve with, for as long as the signal lasts and whenever we lead: the
 * source's bundle is in the configuration. Where cert-manager was asked to fill it in, or the source knows no bundle, it
 * is left alone.
 */
export async function keepCaBundle(options: KeepCaBundleOptions): Promise<void> {
  const { client, source, mayWrite, clock, onProblem, signal } = options;
  const tell = createTeller(onProblem);

  /** Tells what is wrong, if anything. Throws where it cannot read or write. */
  async function look(): Promise<void> {
    const ca = source.current()?.ca;
    if (!mayWrite()) return tell(undefined);
    const configuration = await readConfiguration(client, signal);
    if (configuration === undefined) {
      return tell(
        `there is no MutatingWebhookConfiguration ${WEBHOOK_CONFIGURATION}, so nobody calls the webhook: apply the manifest that has it`,
      );
    }
    const patch = ca === undefined ? [] : caBundlePatch(configuration, ca);
    if (patch.length > 0 && isInjected(configuration)) {
      return tell(
        `cert-manager was asked to fill in the caBundle of ${WEBHOOK_CONFIGURATION}, and what is there does not vouch for the webhook's certificate`,
        PATIENCE_WITH_OTHERS,
      );
    }
    if (patch.length > 0 && mayWrite()) await write(patch);
    tell(undefined);
  }

  async function write(patch: readonly Operation[]): Promise<void> {
    try {
      await client.request('patch', `${PATH}?fieldManager=${FIELD_MANAGER}`, {
        body: patch,
        contentType: 'application/json-patch+json',
        metadataOnly: true,
        signal,
      });
    } catch (error) {
      // The next look reads it again.
      if (!isConflict(error) && !isGone(error)) throw error;
    }
  }

  let wake = new AbortController();
  // Nobody can call us before it is trusted.
  source.onChange(() => wake.abort());
  while (!signal.aborted) {
    wake = new AbortController();
    try {
      await look();
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      tell(`the caBundle of ${WEBHOOK_CONFIGURATION} cannot be kept: ${reason}`, PATIENCE);
    }
    await clock.delay(LOOK_MS, AbortSignal.any([signal, wake.signal]));
  }
}
