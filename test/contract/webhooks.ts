import type { JsonObject } from '../simulator/json.ts';
import { startWebhookServer, type WebhookServer } from '../support/webhook-server.ts';
import { type Context, done, NAMESPACE, NOWHERE, PODS, podOf } from './context.ts';

export const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
/** The Service in the contract's namespace that leads to the webhook server. */
export const SERVICE = 'webhook';

/** Installs webhooks, separately for each row. */
export interface Webhooks {
  readonly server: () => WebhookServer;
  /** Resolves when the API server uses the configuration, which replaces the last one. */
  install(...webhooks: readonly JsonObject[]): Promise<void>;
  /** Resolves when the API server no longer uses the configuration. */
  remove(): Promise<void>;
}

/** A server for the rows of a `describe`; nothing is left of it after each row. */
export function webhooksOf(context: () => Context): Webhooks {
  let started: WebhookServer | undefined;
  let installed = 0;
  const server = () => {
    if (!started) throw new Error('the webhook server has not started');
    return started;
  };
  const isProbed = async () => {
    const pod = podOf('probe', NOWHERE, { labels: { probe: `${installed}` } });
    const before = server().requests(`/ready-${installed}`).length;
    done(await context().client.request('POST', `${PODS}?dryRun=All`, pod));
    return server().requests(`/ready-${installed}`).length > before;
  };
  const forget = () => context().client.request('DELETE', `${CONFIGURATIONS}/contract`);
  before(async () => {
    started = await startWebhookServer([`${SERVICE}.${NAMESPACE}.svc`]);
  });
  after(() => started?.stop());
  afterEach(async () => {
    await forget();
    server().reset();
  });
  return {
    server,
    async install(...webhooks) {
      await forget();
      installed += 1;
      const probe = server().webhook(`ready-${installed}`, {
        objectSelector: { matchLabels: { probe: `${installed}` } },
      });
      const objectSelector = { matchExpressions: [{ key: 'probe', operator: 'DoesNotExist' }] };
      const others = webhooks.map((webhook) => ({ objectSelector, ...webhook }));
      const configuration = { metadata: { name: 'contract' }, webhooks: [probe, ...others] };
      done(await context().client.request('POST', CONFIGURATIONS, configuration));
      await context().cluster.waitFor('the webhooks to be known', isProbed);
    },
    async remove() {
      done(await forget());
      await context().cluster.waitFor('the webhooks to be forgotten', async () => !(await isProbed()));
    },
  };
}
