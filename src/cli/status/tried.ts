import { ApiError } from '../../kube/errors.ts';
import type { Read } from './facts.ts';

/** Reads something. A refusal of the API server becomes the reason why it was not read; `right` names what is missing. */
export async function tried<T>(right: string, read: () => Promise<T>): Promise<Read<T>> {
  try {
    return { kind: 'read', value: await read() };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { kind: 'unread', why: error.status === 403 ? `needs the right to ${right}` : error.message };
  }
}
