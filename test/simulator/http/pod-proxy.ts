import { at, text } from '../json.ts';
import type { Api } from '../objects/api.ts';
import type { Address } from '../objects/resources.ts';
import { ApiError, badRequest } from '../objects/status.ts';
import type { Reply } from './server.ts';

/**
 * Answers GET of `pods/NAME:PORT/proxy/PATH` with what the pod answers over http. Unlike on the real server, which refuses such
 * addresses, a pod is reached at a loopback address (`status.podIP`), and at no other.
 */
export async function proxied(api: Api, address: Address, pathname: string): Promise<Reply> {
  const [name = '', port = '80'] = address.name.split(':');
  const ip = text(at(api.find({ ...address, name, subresource: '' }), 'status', 'podIP'));
  if (ip === '') throw badRequest('address not allowed');
  const [, path = ''] = /\/proxy(\/.*)?$/.exec(pathname) ?? [];
  try {
    if (!ip.startsWith('127.')) throw new Error('no route to host');
    const answer = await fetch(`http://${ip}:${port}${path || '/'}`);
    return { status: answer.status, json: await answer.text() };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ApiError(503, 'ServiceUnavailable', `error trying to reach service: dial tcp ${ip}:${port}: ${why}`);
  }
}
