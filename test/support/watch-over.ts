import type { ApiClient } from '../../src/kube/api-client.ts';

/** Makes a client's `watch` from a function that opens a stream of bytes, or that refuses to. */
export function watchOver(
  open: (path: string, signal: AbortSignal) => Promise<AsyncIterable<Buffer>>,
): ApiClient['watch'] {
  return async (path, { signal, onOpen, onPiece }) => {
    const pieces = await open(path, signal);
    onOpen();
    for await (const piece of pieces) onPiece(piece);
  };
}
