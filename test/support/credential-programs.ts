import { appendFile, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One run of a program, as it saw it. */
export type ProgramCall = {
  readonly program: string;
  readonly args: readonly string[];
  readonly stdin: string;
  readonly env: Readonly<Record<string, string>>;
  readonly pid: number;
};

export type HelperLogin = { readonly username: string; readonly secret: string };

/** What a plug-in answers; the kind and version are added. */
export type PluginAnswer = {
  readonly cacheKeyType: string;
  readonly cacheDuration?: string | null;
  readonly auth?: Readonly<Record<string, { readonly username: string; readonly password: string }>> | null;
};

/** Credential helpers and provider plug-ins that speak the real protocols, in a directory of their own. */
export type CredentialPrograms = {
  /** Where they are: for PATH, or as a plug-in's directory. */
  readonly bin: string;
  /** Writes `docker-credential-<name>`, or changes what it knows, by server URL. */
  helper(name: string, logins: Readonly<Record<string, HelperLogin>>): Promise<void>;
  /** Writes a provider plug-in, or changes what it answers. */
  plugin(name: string, answer: PluginAnswer): Promise<void>;
  /**
   * Writes a program that does what a JavaScript text says, once its standard input has ended. In scope: `call` (a
   * {@link ProgramCall}), `say(text)`, `end(code)`, `spawn`.
   */
  program(name: string, body: string): Promise<void>;
  /** All runs so far, of one program or of all. */
  calls(program?: string): Promise<ProgramCall[]>;
  remove(): Promise<void>;
};

const PROVIDER_API = 'credentialprovider.kubelet.k8s.io/v1';

const HELPER = (logins: object): string => `
const logins = ${JSON.stringify(logins)};
if (call.args.join() !== 'get') { say('unknown command'); end(1); }
else if (!Object.hasOwn(logins, call.stdin)) { say('credentials not found in native keychain\\n'); end(1); }
else {
  const { username, secret } = logins[call.stdin];
  say(JSON.stringify({ ServerURL: call.stdin, Username: username, Secret: secret }) + '\\n');
  end(0);
}`;

const PLUGIN = (answer: object): string => `
const { kind, apiVersion, image } = JSON.parse(call.stdin);
if (kind !== 'CredentialProviderRequest' || apiVersion !== '${PROVIDER_API}' || typeof image !== 'string') {
  process.stderr.write('this is not a request');
  end(1);
} else {
  say(JSON.stringify({ kind: 'CredentialProviderResponse', apiVersion, ...${JSON.stringify(answer)} }));
  end(0);
}`;

export async function createCredentialPrograms(): Promise<CredentialPrograms> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-programs-'));
  const bin = join(directory, 'bin');
  const log = join(directory, 'calls');
  await mkdir(bin);
  await appendFile(log, '');

  async function program(name: string, body: string): Promise<void> {
    const file = join(bin, name);
    await writeFile(
      file,
      `#!${process.execPath}
const { appendFileSync } = require('node:fs');
const { spawn } = require('node:child_process');
const { basename } = require('node:path');
const say = (text) => process.stdout.write(text);
const end = (code) => { process.exitCode = code; };
let stdin = '';
process.stdin.setEncoding('utf8').on('data', (text) => { stdin += text; }).on('end', () => {
  const [, file, ...args] = process.argv;
  const call = { program: basename(file), args, stdin, env: { ...process.env }, pid: process.pid };
  appendFileSync(${JSON.stringify(log)}, JSON.stringify(call) + '\\n');
  ${body}
});
`,
    );
    await chmod(file, 0o755);
  }

  return {
    bin,
    program,
    helper: (name, logins) => program(`docker-credential-${name}`, HELPER(logins)),
    plugin: (name, answer) => program(name, PLUGIN(answer)),
    async calls(name) {
      const lines = (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '');
      const all = lines.map((line): ProgramCall => JSON.parse(line));
      return name === undefined ? all : all.filter((call) => call.program === name);
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
