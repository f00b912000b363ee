/** What to say of a key whose address could not be listened on, and why. */
export function cannotListen(key: string, address: string, error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  return new Error(`${key}: cannot listen on "${address}" (${message}); choose another port`);
}
