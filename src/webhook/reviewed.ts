/** The outcome of a review, and the AdmissionReview to send, as JSON. */
export type Reviewed = {
  readonly outcome: 'patched' | 'gated' | 'unchanged' | 'rejected' | 'error';
  readonly text: string;
};

/** A request that cannot be answered with an AdmissionReview. The message says why. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** The HTTP status of the answer, from 400 on. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
