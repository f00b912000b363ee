import type { Askers } from '../../kit/fairness/askers.ts';
import type { Turns } from '../../kit/fairness/turns.ts';
import { createFlights } from '../../kit/flights.ts';
import { fieldOf, parseObject } from '../../kit/json.ts';
import { createLru } from '../../kit/lru.ts';
import type { Login } from './docker.ts';
import { endedWith, PROGRAM, ProgramError, programEnvironment, runProgram } from './process.ts';
import { createRefusals } from './refusals.ts';

export type CredentialHelpersOptions = {
  /** The limit for one run of a program. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly turns: Turns;
};

/** Docker's credential helpers: programs named `docker-credential-<name>` in PATH. */
export type CredentialHelpers = {
  /**
   * Returns the login that a helper has for a host[:port], if any. An answer is remembered for a minute, a failure for
   * ten seconds; at most one run at a time for each helper and host.
   *
   * @throws ProgramError, or the signal's reason
   */
  ask(helper: string, host: string, signal: AbortSignal, askers: Askers): Promise<Login | undefined>;
  /** Forgets a login of the helper that the host refused, so that the helper is asked again. */
  refused(helper: string, host: string, login: Login): void;
};

type Outcome = {
  readonly until: number;
  readonly login?: Login;
  readonly isRefused?: true;
  readonly error?: ProgramError;
};

const ANSWER_TTL = 60_000;
const FAILURE_TTL = 10_000;
const MAX_OUTPUT = 1024 * 1024;
/** The name under which Docker's clients have stored logins for Docker Hub since their first version. */
const HUB_SERVER = 'https://index.docker.io/v1/';
/** docker-credential-helpers, credentials/error.go: this text is a normal answer of the protocol, not an error. */
const NOT_FOUND = 'credentials not found in native keychain';
/** The user name that marks a password as an identity token. */
const TOKEN_USER = '<token>';

export function createCredentialHelpers({ timeoutMs, now, turns }: CredentialHelpersOptions): CredentialHelpers {
  const outcomes = createLru<Outcome>(10_000);
  const runs = createFlights<Outcome>();
  const refusals = createRefusals(now);

  async function run(helper: string, host: string, signal: AbortSignal): Promise<Outcome> {
    refusals.called(`${helper} ${host}`);
    try {
      const result = await runProgram({
        path: `docker-credential-${helper}`,
        args: ['get'],
        stdin: host === 'docker.io' ? HUB_SERVER : host,
        env: programEnvironment(),
        timeoutMs,
        signal,
        maxOutput: MAX_OUTPUT,
      });
      if (result.code !== 0) {
        if (result.stdout.trim() === NOT_FOUND) return { until: now() + ANSWER_TTL };
        throw endedWith(result);
      }
      const login = readAnswer(result.stdout, host);
      return { until: now() + ANSWER_TTL, ...(login === undefined ? {} : { login }) };
    } catch (error) {
      if (error instanceof ProgramError) return { until: now() + FAILURE_TTL, error };
      throw error;
    }
  }

  return {
    async ask(helper, host, signal, askers) {
      const key = `${helper} ${host}`;
      const known = outcomes.get(key);
      const outcome =
        known !== undefined && known.until > now()
          ? known
          : await runs.join(
              key,
              signal,
              (shared, all) => turns.run(all, PROGRAM, shared, () => run(helper, host, shared)),
              askers,
            );
      outcomes.set(key, outcome);
      if (outcome.error !== undefined) throw outcome.error;
      return outcome.login;
    },
    refused(helper, host, login) {
      const key = `${helper} ${host}`;
      const held = outcomes.get(key);
      if (held?.login !== login || held.isRefused === true) return;
      outcomes.set(key, { ...held, isRefused: true, until: Math.min(held.until, refusals.end(key)) });
    },
  };
}

/** @throws ProgramError */
function readAnswer(stdout: string, host: string): Login | undefined {
  const answer = parseObject(stdout) ?? {};
  const [username, secret] = [fieldOf(answer, 'Username'), fieldOf(answer, 'Secret')];
  if (typeof username !== 'string' || typeof secret !== 'string') {
    throw new ProgramError('did not answer with a JSON object of Username and Secret');
  }
  if (username === '' && secret === '') return undefined;
  if (username === TOKEN_USER) return { pattern: host, username: '', password: '', identityToken: secret };
  return { pattern: host, username, password: secret };
}
