import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runInProcess } from '../support/in-process.ts';

const TOML = `
ssl_key_path = "/opt/tolerable/ssl/tls.key"
supported_architectures = ["amd64", "arm64"]
"odd\\nkey" = "a\\nb: \\u001b[31m"
[tolerations]
key = "kubernetes.io/arch"
effect = "NoSchedule"
operator = "Equal"
`;

describe('config convert', () => {
  let directory = '';
  const file = (name: string) => join(directory, name);

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'archaware-convert-'));
    await writeFile(file('tolerable.toml'), TOML);
    await writeFile(file('noe.txt'), '--registry-proxies=docker.io=hub.corp/v2/cache\n');
    await writeFile(file('mto.yaml'), 'kind: Service\n');
  });
  after(() => rm(directory, { recursive: true }));

  it('prints a file that config validate accepts, and lists settings without a counterpart in it and on stderr', async () => {
    const { code, stdout, stderr } = await runInProcess([
      'config',
      'convert',
      '--from',
      'tolerable',
      file('tolerable.toml'),
    ]);
    expect(code).to.equal(0);
    expect(parse(stdout)).to.deep.include({ placement: { mode: 'taints' }, webhook: { enabled: true } });
    const comments = stdout.split('\n').filter((line) => line.startsWith('# - '));
    const told = stderr.trim().split('\n');
    expect(comments).to.have.length.above(2);
    expect(told).to.deep.equal(comments.map((line) => line.replace('# - ', `${file('tolerable.toml')}: `)));
    expect(told.join('\n')).to.match(/ssl_key_path \("\/opt\/tolerable\/ssl\/tls\.key"\): /);
    await writeFile(file('config.yaml'), stdout);
    expect((await runInProcess(['config', 'validate', file('config.yaml')])).code).to.equal(0);
  });

  it('escapes what it shows of the file', async () => {
    const { stdout, stderr } = await runInProcess(['config', 'convert', '--from', 'tolerable', file('tolerable.toml')]);
    expect(`${stdout}${stderr}`).to.include('odd\\u000akey ("a\\nb: \\u001b[31m"): unknown');
  });

  it('reads standard input, and prints JSON', async () => {
    const { code, stdout } = await runInProcess(['config', 'convert', '--from=noe', '-', '--output', 'json'], {
      input: '--cluster-schedulable-archs=arm64 --what=1\n',
    });
    expect(code).to.equal(0);
    const { config, notes }: { config: unknown; notes: unknown[] } = JSON.parse(stdout);
    expect(config).to.deep.include({ architectures: { schedulable: ['arm64'] } });
    expect(notes).to.deep.include({ key: '--what', value: '1', note: 'unknown' });
  });

  it('ignores the environment, like config validate', async () => {
    const environment = { ARCHAWARE_TAINTS__EFFECT: 'wrong' };
    const args = ['config', 'convert', '--from', 'tolerable', file('tolerable.toml')];
    expect((await runInProcess(args, { environment })).code).to.equal(0);
  });

  const refused: [what: string, args: () => string[], expected: RegExp][] = [
    ['no system', () => [file('tolerable.toml')], /--from: got nothing, expected one of tolerable, noe, mto/],
    ['another system', () => ['--from', 'constructor', file('mto.yaml')], /--from: got "constructor", expected one of/],
    ['no file', () => ['--from', 'noe'], /expected one FILE/],
    ['two files', () => ['--from', 'noe', 'a', 'b'], /expected one FILE/],
    ['a missing file', () => ['--from', 'noe', file('none')], /none cannot be read \(ENOENT\)/],
    ['a directory', () => ['--from', 'mto', directory], /cannot be read \(EISDIR\)/],
    ['a file of another system', () => ['--from', 'mto', file('mto.yaml')], /mto\.yaml: got Service, expected/],
    ['a mirror that cannot be one', () => ['--from', 'noe', file('noe.txt')], /omit "\/v2".*noe\.txt, converted:\d+\)/],
  ];
  for (const [what, args, expected] of refused) {
    it(`refuses ${what} in one line, with exit code 3`, async () => {
      const { code, stdout, stderr } = await runInProcess(['config', 'convert', ...args()]);
      expect(stderr).to.match(expected);
      expect(stderr.trim().split('\n'), stderr).to.have.length(1);
      expect(stdout).to.equal('');
      expect(code).to.equal(3);
    });
  }

  it('is the only command with --from', async () => {
    const { code, stderr } = await runInProcess(['config', 'schema', '--from', 'noe']);
    expect(code).to.equal(3);
    expect(stderr).to.match(/--from: only allowed with config convert/);
  });
});
