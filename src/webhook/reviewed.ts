import type { JsonObject } from '../kit/json.ts';

/** What became of a review, and the AdmissionReview that says so. */
export type Reviewed = {
  readonly outcome: 'patched' | 'gated' | 'unchanged' | 'rejected' | 'error';
  readonly response: JsonObject;
};

/** A request that cannot be answered by an AdmissionReview; the message says what is wrong with it. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** Of the HTTP answer, from 400 on. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
