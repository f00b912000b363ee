/**
 * Loaded into the controller's process with `NODE_OPTIONS=--import`. It moves the wall clock (`Date`) and answers DNS
 * lookups, as the JSON file `FAULTS_CONTROL` says; SIGUSR2 reads the file again. Monotonic time and timers stay as they are, as
 * on a machine whose clock is set. What Node.js does not do itself stays as well: OpenSSL judges certificates by the real time.
 */

import dns from 'node:dns';
import { readFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

let control = read();

function read() {
  return { clockMs: 0, names: {}, ...JSON.parse(readFileSync(process.env.FAULTS_CONTROL, 'utf8')) };
}

process.on('SIGUSR2', () => {
  control = read();
  process.stderr.write(`${JSON.stringify({ msg: 'control read', ...control })}\n`);
});

const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length === 0 ? [RealDate.now() + control.clockMs] : args));
  }
  static now() {
    return RealDate.now() + control.clockMs;
  }
};

const systemLookup = dns.lookup;
/** Names that end in `.faults.test` are known here alone. */
dns.lookup = (name, options, callback) => {
  const [given, done] = typeof options === 'function' ? [{}, options] : [options, callback];
  if (!name.endsWith('.faults.test')) return systemLookup(name, given, done);
  const address = control.names[name];
  process.nextTick(() => {
    if (address === undefined) {
      const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND', hostname: name });
      return done(error);
    }
    if (given.all) return done(null, [{ address, family: 4 }]);
    done(null, address, 4);
  });
};
syncBuiltinESMExports();
