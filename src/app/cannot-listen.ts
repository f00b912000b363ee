import { messageOf } from '../kit/errors.ts';
/** Returns the error for a configuration key whose address could not be listened on. */
export function cannotListen(key: string, address: string, error: unknown): Error {
  const message = messageOf(error);
  return new Error(`${key}: cannot listen on "${address}" (${message}); choose another port`);
}
