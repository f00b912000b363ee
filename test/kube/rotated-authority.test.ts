import { createServer } from 'node:https';
import { expect } from 'chai';
import { createAuthority } from '../../hack/cluster/certificates.ts';
import { listen } from '../../src/kit/network/listen.ts';
import type { TlsOptions } from '../../src/kube/access.ts';
import { clientAt } from './cluster.ts';

function issue(name: string) {
  const authority = createAuthority(name);
  const { certificate: cert, key } = authority.issue('kube-apiserver', ['127.0.0.1']);
  return { trust: { ca: Buffer.from(authority.certificate) }, serving: { cert, key } };
}

describe('an API client whose authority is rotated', () => {
  it('trusts the new one with its next connection', async () => {
    const [old, next] = [issue('old'), issue('next')];
    const server = createServer(old.serving, (_request, response) => response.end('{"kind":"Status"}'));
    server.on('tlsClientError', () => undefined);
    const port = await listen(server, '127.0.0.1:0');
    let trusted: TlsOptions = old.trust;
    const client = clientAt(`https://127.0.0.1:${port}`, { tls: () => trusted });
    const ask = () => client.request('get', '/version').catch((error: unknown) => String(error));
    try {
      expect(await ask()).to.deep.equal({ kind: 'Status' });
      server.setSecureContext(next.serving);
      server.closeAllConnections();
      const untrusted =
        /the certificate of the API server at .* is not trusted: .*(?:LEAF_SIGNATURE|SELF_SIGNED|CERT_SIGNATURE)/;
      expect(await ask()).to.match(untrusted);
      trusted = next.trust;
      expect(await ask()).to.deep.equal({ kind: 'Status' });
    } finally {
      await client.close();
      server.close();
    }
  });
});
