import { Socket } from 'node:net';
import { buildConnector } from 'undici';
import { onAbort } from '../abort.ts';

/**
 * Returns undici's connector. When the signal aborts, the connections that it is still making fail at once: undici leaves them
 * until their time-out when its pools are destroyed, and the process would wait for that.
 *
 * Why not the option `signal` of Node.js's sockets: it keeps every socket in memory for as long as the signal can abort, also
 * long after the socket was closed (seen in Node.js 20, 22 and 24; some 10 KB for each connection that was ever made).
 */
export function createConnector(options: buildConnector.BuildOptions, signal: AbortSignal): buildConnector.connector {
  // undici returns the socket, although its types do not say so.
  const connect: (...parameters: Parameters<buildConnector.connector>) => unknown = buildConnector(options);
  return (target, callback) => {
    if (signal.aborted) {
      // A proxy's connection for this one: nobody else knows it.
      target.httpSocket?.destroy();
      return callback(new Error('ended'), null);
    }
    let forget = () => {};
    const socket = connect(target, (...result) => {
      forget();
      callback(...result);
    });
    if (socket instanceof Socket) forget = onAbort(signal, () => socket.destroy(new Error('ended')));
  };
}
