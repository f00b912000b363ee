import { fieldOf, parseObject } from '../../kit/json.ts';
import { type CredentialProgram, createAnswers, type ProgramOptions } from './answers.ts';
import type { Login } from './docker.ts';
import { endedWith, ProgramError, programEnvironment, runProgram } from './process.ts';

const ANSWER_TTL = 60_000;
/** The name under which Docker's clients have stored logins for Docker Hub since their first version. */
const HUB_SERVER = 'https://index.docker.io/v1/';
/** docker-credential-helpers, credentials/error.go: this text is a normal answer of the protocol, not an error. */
const NOT_FOUND = 'credentials not found in native keychain';
/** The user name that marks a password as an identity token. */
const TOKEN_USER = '<token>';

/** One of Docker's credential helpers: a program named `docker-credential-<name>` in PATH. It is asked for a host[:port]. */
export function createCredentialHelper(helper: string, options: ProgramOptions): CredentialProgram {
  const name = `docker-credential-${helper}`;
  const answers = createAnswers(options, async (host, signal) => {
    const stdin = host === 'docker.io' ? HUB_SERVER : host;
    const { timeoutMs } = options;
    const result = await runProgram({ path: name, args: ['get'], stdin, env: programEnvironment(), timeoutMs, signal });
    const isUnknown = result.code !== 0 && result.stdout.trim() === NOT_FOUND;
    if (result.code !== 0 && !isUnknown) throw endedWith(result);
    return { logins: isUnknown ? [] : readAnswer(result.stdout, host), key: host, ttlMs: ANSWER_TTL };
  });
  return { kind: 'helper', name, ...answers };
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
