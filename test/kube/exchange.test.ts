import { expect } from 'chai';
import type { Dispatcher } from 'undici';
import { exchange, type RunningExchange } from '../../src/kube/exchange.ts';

describe('one request and its answer', () => {
  it('fails if the text of the answer cannot be made', async () => {
    const body = Buffer.from('{}');
    body.toString = () => {
      throw new Error('longer than a text can be');
    };
    /** Reports what a handler throws as the error of the request, as undici does. */
    const dispatch = (_: unknown, handler: Dispatcher.DispatchHandler): boolean => {
      const nothing = () => undefined;
      const controller: Dispatcher.DispatchController = {
        ...{ aborted: false, paused: false, reason: null },
        ...{ abort: nothing, pause: nothing, resume: nothing },
      };
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, 200, {}, 'OK');
      handler.onResponseData?.(controller, body);
      try {
        handler.onResponseEnd?.(controller, {});
      } catch (error) {
        handler.onResponseError?.(controller, error instanceof Error ? error : new Error(String(error)));
      }
      return true;
    };
    const request = { origin: 'http://a', method: 'GET', path: '/', headers: {}, body: null, bodyTimeout: 0 } as const;
    let limits = 0;
    const limit = () => {
      limits += 1;
      return () => {
        limits -= 1;
      };
    };
    const running = new Set<RunningExchange>();
    const broken = (cause: Error, hasBegun: boolean) => new Error(`broken, begun: ${hasBegun}: ${cause.message}`);
    const options = { running, signal: new AbortController().signal, limit, broken };
    const failed = await exchange({ dispatch }, request, options).catch((error: unknown) => error);
    expect(String(failed)).to.equal('Error: broken, begun: true: longer than a text can be');
    expect([limits, running.size]).to.deep.equal([0, 0]);
  });
});
