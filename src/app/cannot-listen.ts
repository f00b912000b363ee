import { messageOf } from '../kit/errors.ts';
/** What to say of a key whose address could not be listened on, and why. */
export function cannotListen(key: string, address: string, error: unknown): Error {
  const message = messageOf(error);
  return new Error(`${key}: cannot listen on "${address}" (${message}); choose another port`);
}
