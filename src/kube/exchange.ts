import type { Dispatcher } from 'undici';
import { onAbort } from '../kit/abort.ts';

/** One HTTP request, as undici's dispatcher takes it. */
export type ExchangeRequest = {
  readonly origin: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  /** Milliseconds between two pieces of the body; 0: no limit. */
  readonly bodyTimeout: number;
};

/** A whole answer. `text` is empty if its pieces went to {@link ExchangeOptions.onPiece}. */
export type HttpAnswer = { readonly status: number; readonly retryAfter: unknown; readonly text: string };

/** An exchange that is not over. Whoever doubts its connection sets `heard` to false, and sees later whether a byte came. */
export type RunningExchange = { readonly isWatch: boolean; heard: boolean; fail(error: Error): void };

export type ExchangeOptions = {
  /** Where it stands while it is not over. */
  readonly running: Set<RunningExchange>;
  readonly signal: AbortSignal;
  /** Starts the time limit for the body of an answer; returns a function that cancels it. */
  readonly limit: (onLate: (error: Error) => void) => () => void;
  /** Called when the answer to a watch begins well; its body has no time limit. Absent: the request is not a watch. */
  readonly onOpen?: ((status: number) => void) | undefined;
  /** Takes the body of a successful answer in pieces, in place of `text`. What it throws ends the exchange. */
  readonly onPiece?: ((piece: Buffer) => void) | undefined;
  /** Returns the error for an answer that broke off, or took too long. `hasBegun`: whether its head had arrived. */
  readonly broken: (cause: Error, hasBegun: boolean) => Error;
};

/**
 * Sends a request and reads its answer, with one promise for all of it: `undici`'s own `request` makes a stream for each body, which costs
 * about as much as the rest of a small request. Throws what `broken` returns, the reason of the signal, or what `onPiece` threw.
 */
export function exchange(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  request: ExchangeRequest,
  { running, signal, limit, onOpen, onPiece, broken }: ExchangeOptions,
): Promise<HttpAnswer> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | undefined;
    let status = 0;
    let retryAfter: unknown;
    let isInPieces = false;
    let isOver = false;
    let first: Buffer | undefined;
    let others: Buffer[] | undefined;
    let cancelLimit: (() => void) | undefined;

    function end(): boolean {
      if (isOver) return false;
      isOver = true;
      running.delete(self);
      cancelLimit?.();
      forget();
      return true;
    }

    function fail(error: unknown): void {
      if (!end()) return;
      reject(error);
      controller?.abort(error instanceof Error ? error : new Error(String(error)));
    }

    const self: RunningExchange = {
      isWatch: onOpen !== undefined,
      heard: false,
      fail: (error) => fail(broken(error, status !== 0)),
    };
    running.add(self);
    // Before there is a connection, nothing was sent and nothing will be, so the caller need not wait for one.
    const forget = onAbort(signal, () => fail(signal.reason));
    dispatcher.dispatch(request, {
      onRequestStart(started) {
        controller = started;
        if (isOver) started.abort(new Error('ended'));
      },
      onResponseStart(_, statusCode, headers) {
        self.heard = true;
        // An answer such as 103 comes before the real one.
        if (statusCode < 200) return;
        status = statusCode;
        retryAfter = headers['retry-after'];
        isInPieces = onPiece !== undefined && statusCode < 300;
        if (isInPieces && onOpen !== undefined) onOpen(statusCode);
        else cancelLimit = limit(self.fail);
      },
      onResponseData(_, piece) {
        if (isOver) return;
        self.heard = true;
        if (isInPieces) {
          try {
            onPiece?.(piece);
          } catch (error) {
            fail(error);
          }
        } else if (first === undefined) first = piece;
        else if (others === undefined) others = [first, piece];
        else others.push(piece);
      },
      onResponseEnd() {
        if (isOver) return;
        const body = others === undefined ? first : Buffer.concat(others);
        // First the text: if it is longer than a text can be, this throws, and undici reports that as the error of the request.
        const text = body === undefined ? '' : body.toString('utf8');
        end();
        resolve({ status, retryAfter, text });
      },
      onResponseError(_, error) {
        fail(signal.aborted ? signal.reason : broken(error, status !== 0));
      },
    });
  });
}
