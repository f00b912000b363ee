import { expect } from 'chai';
import { tried } from '../../../src/cli/status/facts.ts';
import { ApiError } from '../../../src/kube/errors.ts';

describe('a read of status that was refused', () => {
  const refused = (body: unknown) => tried('get pods/proxy', () => Promise.reject(new ApiError(403, body, 'get /x')));

  it('names the missing right', async () => {
    const body = { kind: 'Status', reason: 'Forbidden', message: 'pods "x" is forbidden' };
    expect(await refused(body)).to.deep.equal({ kind: 'unread', why: 'needs the right to get pods/proxy' });
  });

  it('names none if what is behind the proxy refused', async () => {
    expect(await refused({ message: 'no entry' })).to.deep.equal({ kind: 'unread', why: 'get /x: 403 no entry' });
  });
});
