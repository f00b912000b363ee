/** What a replica logs in with, and whom it trusts, changes while it runs. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../../../hack/cluster/certificates.ts';
import { expectSuccess } from '../../../hack/cluster/client.ts';
import { textAt } from '../../../hack/cluster/json.ts';
import { type ApiProxy, startApiProxy } from '../../e2e/support/api-proxy.ts';
import { changeKubeconfig } from '../../e2e/support/kubeconfig.ts';
import { createControl } from '../support/control.ts';
import type { Fault } from '../support/harness.ts';
import type { Lab } from '../support/lab.ts';
import { often } from '../support/ways.ts';

const ACCOUNT = '/api/v1/namespaces/archaware/serviceaccounts/archaware-controller/token';
const SECRETS = '/api/v1/namespaces/archaware/secrets';

/** A token that the API server refuses as soon as the Secret to which it is bound is deleted. */
async function boundToken({ cluster }: Lab, name: string): Promise<string> {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name } };
  const created = expectSuccess(name, await cluster.request('POST', SECRETS, secret));
  const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', name, uid: textAt(created, 'metadata', 'uid') };
  const wanted = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { boundObjectRef } };
  return textAt(expectSuccess('token', await cluster.request('POST', ACCOUNT, wanted)), 'status', 'token');
}

/** The kubeconfig with a token that is read from a file, as in a pod. */
const withTokenFile = (kubeconfig: string, tokenFile: string) =>
  changeKubeconfig(kubeconfig, { user: { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } } });

/** `clockMs`: what the wall clock jumps by before the token is replaced. */
function expiredToken(name: string, clockMs: number): Fault {
  let [directory, file, number] = ['', '', 0];
  let move: (lab: Lab) => Promise<void>;
  return {
    name,
    on: 'control plane',
    async prepare(lab) {
      directory = await mkdtemp(join(tmpdir(), 'archaware-token-'));
      file = join(directory, 'token');
      const bound = `token-${++number}-${Math.abs(clockMs)}`;
      await writeFile(file, await boundToken(lab, bound));
      const control = await createControl({});
      move = (moved) => control.move(moved, moved.replicas.all(), { clockMs });
      await lab.replicas.keep(0);
      const { environment } = control;
      const options = { environment, kubeconfig: (through: string) => withTokenFile(through, file) };
      await Promise.all([lab.replicas.start(options), lab.replicas.start(options)]);
      return async () => {
        await lab.replicas.keep(0);
        await control.remove();
        await rm(directory, { recursive: true });
      };
    },
    async happen({ lab, load, dice }) {
      if (clockMs !== 0) await move(lab);
      const refused = `token-${number}-${Math.abs(clockMs)}`;
      await lab.cluster.request('DELETE', `${SECRETS}/${refused}`);
      await load.add(dice.whole(2, 6));
      await lab.eventually('the API server to refuse the token', async () =>
        lab.replicas.all().some(({ proxy }) => proxy.requests().some(({ status }) => status === 401)),
      );
      await load.add(dice.whole(1, 3));
      await writeFile(file, await boundToken(lab, `${refused}-next`));
      return 'the file has a new one after the first refusal';
    },
    removes: (key) => key.startsWith('secrets archaware/token-'),
  };
}

/** TLS in front of the proxy of a replica. `rotate`: a new authority issues the certificate, and the file names it, or both. */
type TlsFront = { readonly proxy: ApiProxy; rotate(keepOld: boolean): Promise<void> };

async function startTlsFront({ host }: ApiProxy, caFile: string): Promise<TlsFront> {
  let [trusted, number] = ['', 0];
  const issue = async (keep: string) => {
    const authority = createAuthority(`faults ${++number}`);
    await writeFile(caFile, keep + authority.certificate);
    trusted = authority.certificate;
    return authority.issue('kube-apiserver', ['127.0.0.1']);
  };
  const proxy = await startApiProxy({ server: `http://${host}` }, await issue(''));
  return { proxy, rotate: async (keepOld) => proxy.renew(await issue(keepOld ? trusted : '')) };
}

/** `keepOld`: the file names both authorities. */
function rotatedAuthority(name: string, keepOld: boolean): Fault {
  let fronts: TlsFront[] = [];
  return {
    name,
    async prepare(lab) {
      await lab.replicas.keep(0);
      fronts = [];
      const options = {
        async kubeconfig(through: string, proxy: ApiProxy) {
          const caFile = `${through}.crt`;
          const front = await startTlsFront(proxy, caFile);
          fronts.push(front);
          const cluster = { server: `https://${front.proxy.host}`, 'certificate-authority': caFile };
          return changeKubeconfig(through, { cluster: () => cluster });
        },
      };
      await Promise.all([lab.replicas.start(options), lab.replicas.start(options)]);
      return async () => {
        await lab.replicas.keep(0);
        await Promise.all(fronts.map(({ proxy }) => proxy.close()));
      };
    },
    async happen({ load, dice }) {
      const times = dice.whole(1, 2);
      for (let time = 0; time < times; time++) {
        await Promise.all(fronts.map((front) => front.rotate(keepOld)));
        await load.add(dice.whole(2, 4));
      }
      return often(times);
    },
  };
}

const DAY_MS = 86_400_000;

export const access: readonly Fault[] = [
  expiredToken('bearer token refused, the file has a new one', 0),
  expiredToken('bearer token refused after the wall clock jumped back', -DAY_MS),
  rotatedAuthority('authority of the API server rotated, the file names both', true),
  rotatedAuthority('authority of the API server replaced, the file names the new one', false),
];
