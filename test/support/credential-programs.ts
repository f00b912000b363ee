import { appendFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

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

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

const HELPER = (logins: Readonly<Record<string, HelperLogin>>): string => `
[ "$*" = get ] || { printf 'unknown command'; exit 1; }
case "$stdin" in
${Object.entries(logins)
  .map(([server, { username, secret }]) => {
    const answer = JSON.stringify({ ServerURL: server, Username: username, Secret: secret });
    return `${quoted(server)}) printf '%s\\n' ${quoted(answer)} ;;`;
  })
  .join('\n')}
*) printf 'credentials not found in native keychain\\n'; exit 1 ;;
esac`;

const PLUGIN = (answer: object): string => `
case "$stdin" in *'"kind":"CredentialProviderRequest"'*) ;; *) printf 'this is not a request' >&2; exit 1 ;; esac
case "$stdin" in *'"apiVersion":"${PROVIDER_API}"'*) ;; *) printf 'of another version' >&2; exit 1 ;; esac
printf '%s' ${quoted(JSON.stringify({ kind: 'CredentialProviderResponse', apiVersion: PROVIDER_API, ...answer }))}`;

export async function createCredentialPrograms(): Promise<CredentialPrograms> {
  const directory = await mkdtemp(join(tmpdir(), 'archaware-programs-'));
  const bin = join(directory, 'bin');
  const log = join(directory, 'calls');
  await mkdir(bin);
  await appendFile(log, '');

  const write = (name: string, text: string) => writeFile(join(bin, name), text, { mode: 0o755 });

  /** For the shell, which starts ten times as fast as Node.js. A call is one write: its fields end with U+001E, itself with U+001D. */
  const shell = (name: string, body: string) =>
    write(
      name,
      `#!/bin/sh
IFS= read -r stdin
printf '%s\\036' "\${0##*/}" $$ "$stdin" "$(env)" "$@" "$(printf '\\035')" >> ${quoted(log)}
${body}
`,
    );

  const program = (name: string, body: string) =>
    write(
      name,
      `#!${process.execPath}
const { appendFileSync } = require('node:fs');
const { spawn } = require('node:child_process');
const { basename } = require('node:path');
const say = (text) => process.stdout.write(text);
const end = (code) => { process.exitCode = code; };
let stdin = '';
process.stdin.setEncoding('utf8').on('data', (text) => { stdin += text; }).on('end', () => {
  const [, file, ...args] = process.argv;
  const call = { args, stdin };
  const env = Object.entries(process.env).map((pair) => pair.join('=')).join('\\n');
  appendFileSync(${JSON.stringify(log)}, [basename(file), process.pid, stdin, env, ...args, '\\x1d', ''].join('\\x1e'));
  ${body}
});
`,
    );

  return {
    bin,
    program,
    helper: (name, logins) => shell(`docker-credential-${name}`, HELPER(logins)),
    plugin: (name, answer) => shell(name, PLUGIN(answer)),
    async calls(name) {
      const records = (await readFile(log, 'utf8')).split('\x1d\x1e').slice(0, -1);
      const all = records.map((record): ProgramCall => {
        const [program = '', pid, stdin = '', env = '', ...args] = record.split('\x1e').slice(0, -1);
        const variables = env.split('\n').map((line) => line.split(/=(.*)/));
        return { program, args, stdin, env: Object.fromEntries(variables), pid: Number(pid) };
      });
      return name === undefined ? all : all.filter((call) => call.program === name);
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/** For a suite: each of its tests has programs of its own, which are in PATH. */
export function programsForEach(): () => CredentialPrograms {
  let programs: CredentialPrograms;
  let path: string | undefined;
  beforeEach(async () => {
    programs = await createCredentialPrograms();
    path = process.env.PATH;
    process.env.PATH = [programs.bin, path].join(delimiter);
  });
  afterEach(async () => {
    process.env.PATH = path;
    await programs.remove();
  });
  return () => programs;
}
