import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';

/** The last line of a file's text, which closes its JSON. */
const OPEN = '}}\n';
/** The same with a checksum: the file stays one JSON object. */
const SEALED = /^\},"sha256":"([0-9a-f]{64})"\}\n$/;
/** Bytes of the longest last line. */
const MOST = 100;
/** Bytes that are hashed before other work gets a turn. */
const PIECE = 1024 * 1024;

/** Passes on a file's text, and puts the SHA-256 of all that stands before its last line into that line. */
export function* sealed(pieces: Iterable<string>): Generator<string> {
  const hash = createHash('sha256');
  let last = '';
  for (const piece of pieces) {
    hash.update(last);
    yield last;
    last = piece;
  }
  const rest = last.slice(0, -OPEN.length);
  yield `${rest}},"sha256":"${hash.update(rest).digest('hex')}"}\n`;
}

/**
 * Returns the text that {@link sealed} got; undefined if the checksum is missing or wrong. A disk that changes one bit would otherwise
 * change what an image runs on, and digests never expire. Writes to the body.
 */
export async function unsealed(body: Buffer): Promise<Buffer | undefined> {
  const start = body.lastIndexOf(0x0a, body.length - 2) + 1;
  const line = body.length - start > MOST ? '' : body.toString('utf8', start);
  const checksum = SEALED.exec(line)?.[1];
  if (checksum === undefined) return undefined;
  const hash = createHash('sha256');
  for (let from = 0; from < start; from += PIECE) {
    hash.update(body.subarray(from, Math.min(from + PIECE, start)));
    await turn();
  }
  return hash.digest('hex') === checksum ? body.subarray(0, start + body.write(OPEN, start)) : undefined;
}
