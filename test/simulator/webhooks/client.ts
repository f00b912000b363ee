import { Agent, buildConnector, request as send } from 'undici';
import { patientClock } from '../../support/patient-clock.ts';
import { at, type JsonObject, object, text } from '../json.ts';
import { SERVICES } from '../objects/resources.ts';
import type { Store } from '../objects/store.ts';
import { CallFailure } from './answer.ts';

/**
 * Sends reviews to webhooks: over kept-alive HTTPS connections that nothing but the webhook's `caBundle` vouches for. A
 * Service is found where it is of type ExternalName (which the real server follows too); there is no other network here.
 */
export function createWebhookClient(store: Store) {
  const agents = new Map<string, Agent>();
  const clock = patientClock();

  /** `NAME.NAMESPACE.svc` is what the certificate is for, whatever the Service leads to. */
  function hostOf(hostname: string): string {
    const [, name, namespace] = /^([^.]+)\.([^.]+)\.svc$/.exec(hostname) ?? [];
    if (name === undefined || namespace === undefined) return hostname;
    const service = store.get(SERVICES, namespace, name);
    if (!service) throw new Error(`service "${name}" not found`);
    if (at(service, 'spec', 'type') === 'ExternalName') return text(at(service, 'spec', 'externalName'));
    throw new Error(`no endpoints available for service "${name}"`);
  }

  function agentOf(caBundle: string): Agent {
    let agent = agents.get(caBundle);
    if (!agent) {
      const ca = Buffer.from(caBundle, 'base64').toString();
      const connector = buildConnector(ca === '' ? {} : { ca });
      const connect: buildConnector.connector = (options, callback) => {
        try {
          const { hostname } = options;
          const target = hostOf(hostname);
          const named = target === hostname ? {} : { servername: hostname, hostname: target };
          connector({ ...options, ...named }, callback);
        } catch (error) {
          callback(error instanceof Error ? error : new Error(String(error)), null);
        }
      };
      agent = new Agent({ connect });
      agents.set(caBundle, agent);
    }
    return agent;
  }

  return {
    /** The text of the webhook's answer. Throws a `CallFailure`. */
    async post(webhook: JsonObject, review: JsonObject): Promise<string> {
      const config = object(webhook.clientConfig);
      const seconds = Number(webhook.timeoutSeconds);
      const url = `${urlOf(config)}?timeout=${seconds}s`;
      const late = new AbortController();
      const cancel = clock.after(seconds * 1000, () => late.abort());
      try {
        const answer = await send(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'user-agent': 'kube-apiserver-admission' },
          body: JSON.stringify(review),
          dispatcher: agentOf(text(config.caBundle)),
          signal: late.signal,
        });
        const source = await answer.body.text();
        if (answer.statusCode === 200) return source;
        throw new Error(`the server responded with the status code ${answer.statusCode}`);
      } catch (error) {
        const why = late.signal.aborted
          ? 'context deadline exceeded'
          : error instanceof Error
            ? error.message
            : String(error);
        throw new CallFailure(`failed to call webhook: Post "${url}": ${why}`);
      } finally {
        cancel();
      }
    },
    close: () => Promise.all([...agents.values()].map((agent) => agent.destroy())),
  };
}

function urlOf({ url, service }: JsonObject): string {
  if (url !== undefined) return text(url);
  const { name, namespace, port = 443, path = '/' } = object(service);
  return `https://${text(name)}.${text(namespace)}.svc:${Number(port)}${text(path)}`;
}
