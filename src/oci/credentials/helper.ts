import type { Askers } from '../../kit/fairness/askers.ts';
import type { Turns } from '../../kit/fairness/turns.ts';
import { fieldOf, parseObject } from '../../kit/json.ts';
import { createAnswers, type Question } from './answers.ts';
import type { Login } from './docker.ts';
import { endedWith, ProgramError, programEnvironment, runProgram } from './process.ts';

export type CredentialHelpersOptions = {
  /** The limit for one run of a program. */
  readonly timeoutMs: number;
  readonly now: () => number;
  readonly turns: Turns;
};

const ANSWER_TTL = 60_000;
const MAX_OUTPUT = 1024 * 1024;
/** The name under which Docker's clients have stored logins for Docker Hub since their first version. */
const HUB_SERVER = 'https://index.docker.io/v1/';
/** docker-credential-helpers, credentials/error.go: this text is a normal answer of the protocol, not an error. */
const NOT_FOUND = 'credentials not found in native keychain';
/** The user name that marks a password as an identity token. */
const TOKEN_USER = '<token>';

/** Docker's credential helpers: programs named `docker-credential-<name>` in PATH. */
export function createCredentialHelpers({ timeoutMs, now, turns }: CredentialHelpersOptions) {
  const answers = createAnswers(now, turns);

  async function run(helper: string, host: string, signal: AbortSignal): Promise<readonly Login[]> {
    const result = await runProgram({
      path: `docker-credential-${helper}`,
      args: ['get'],
      stdin: host === 'docker.io' ? HUB_SERVER : host,
      env: programEnvironment(),
      timeoutMs,
      signal,
      maxOutput: MAX_OUTPUT,
    });
    if (result.code === 0) return readAnswer(result.stdout, host);
    if (result.stdout.trim() === NOT_FOUND) return [];
    throw endedWith(result);
  }

  return {
    /**
     * Returns the login that a helper has for a host[:port], if any. An answer is remembered for a minute, a failure for
     * ten seconds; at most one run at a time for each helper and host.
     *
     * @throws ProgramError, or the signal's reason
     */
    async ask(helper: string, host: string, signal: AbortSignal, askers: Askers): Promise<Login | undefined> {
      const question = questionOf(helper, host);
      const [login] = await answers.ask(question, signal, askers, async (shared) => ({
        logins: await run(helper, host, shared),
        key: question.registry,
        ttlMs: ANSWER_TTL,
      }));
      return login;
    },
    /** Forgets a login of the helper that the host refused, so that the helper is asked again. */
    refused: (helper: string, host: string, login: Login): void => answers.refused(questionOf(helper, host), login),
  };
}

/** Two helpers may answer differently for a host. */
function questionOf(helper: string, host: string): Question {
  const key = `${helper} ${host}`;
  return { keys: [key], registry: key };
}

/** @throws ProgramError */
function readAnswer(stdout: string, host: string): Login[] {
  const answer = parseObject(stdout) ?? {};
  const [username, secret] = [fieldOf(answer, 'Username'), fieldOf(answer, 'Secret')];
  if (typeof username !== 'string' || typeof secret !== 'string') {
    throw new ProgramError('did not answer with a JSON object of Username and Secret');
  }
  if (username === '' && secret === '') return [];
  if (username === TOKEN_USER) return [{ pattern: host, username: '', password: '', identityToken: secret }];
  return [{ pattern: host, username, password: secret }];
}
