import { once } from 'node:events';
import { createServer } from 'node:https';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { isObject, type JsonObject, object } from '../simulator/json.ts';

/** The request of an AdmissionReview, and where it came to. */
export interface Reviewed {
  /** The URL's path. */
  readonly path: string;
  /** Its query, from `?` on. */
  readonly query: string;
  readonly request: JsonObject;
}

/**
 * What a webhook answers: the response of an AdmissionReview without its uid, or a text that is not a response. With `hang` it
 * does not answer at all.
 */
export type Answer = JsonObject | string;
export type Answering = (request: JsonObject) => Answer | Promise<Answer>;

/** A webhook of the tests' own on 127.0.0.1. It allows everything that it does not have to change. */
export interface WebhookServer {
  readonly port: number;
  readonly calls: readonly Reviewed[];
  /** Of the calls to the path, what they were about. */
  requests(path: string): JsonObject[];
  /** What is answered at the path from now on. */
  answer(path: string, answering: Answering): void;
  /** A webhook `NAME.example.com` of a configuration, at the path /NAME: pods CREATE, and fails closed, unless told. */
  webhook(name: string, settings?: JsonObject): JsonObject;
  /** Allows everything and has seen nothing, again. */
  reset(): void;
  stop(): Promise<void>;
}

/** The response with a JSON Patch. */
export const patching = (operations: unknown): JsonObject => ({
  allowed: true,
  patchType: 'JSONPatch',
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});

/** Its certificate is for 127.0.0.1 and for the names given. */
export async function startWebhookServer(names: readonly string[] = []): Promise<WebhookServer> {
  const authority = createAuthority('webhook authority');
  const { certificate, key } = authority.issue('webhook', ['127.0.0.1', ...names]);
  let calls: Reviewed[] = [];
  let answers = new Map<string, Answering>();
  const server = createServer({ cert: certificate, key }, async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
    const review: unknown = JSON.parse(Buffer.concat(chunks).toString());
    const request = object(object(review).request);
    const { pathname: path, search: query } = new URL(incoming.url ?? '', 'https://webhook');
    calls.push({ path, query, request });
    const answer = (await answers.get(path)?.(request)) ?? { allowed: true };
    if (answer === 'hang') return;
    const body = isObject(answer)
      ? { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: { uid: request.uid, ...answer } }
      : answer;
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(isObject(body) ? JSON.stringify(body) : body);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address: unknown = server.address();
  const port = Number(object(address).port);
  const caBundle = Buffer.from(authority.certificate).toString('base64');
  return {
    port,
    get calls() {
      return calls;
    },
    requests: (path) => calls.filter((call) => call.path === path).map(({ request }) => request),
    answer: (path, answering) => void answers.set(path, answering),
    webhook: (name, { clientConfig, ...settings } = {}) => ({
      name: `${name}.example.com`,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      failurePolicy: 'Fail',
      timeoutSeconds: 5,
      ...settings,
      clientConfig: { caBundle, ...whereTo(`https://127.0.0.1:${port}/${name}`, object(clientConfig)) },
    }),
    reset() {
      calls = [];
      answers = new Map();
    },
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

/** A `clientConfig` names a url or a service. */
const whereTo = (url: string, config: JsonObject): JsonObject => ('service' in config ? config : { url, ...config });
