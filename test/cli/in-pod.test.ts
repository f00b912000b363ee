import { expect } from 'chai';
import { type ConfigPlace, controllerWords, refusalBesideController } from '../../src/cli/deployed.ts';
import { PROGRAM, programOf } from '../../src/cli/program.ts';
import { runInProcess } from '../support/in-process.ts';

const inPod = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };
const RUN = ['node', 'dist/main.js', 'run', '--config', '/etc/archaware/config.yaml'];

describe('a process', () => {
  const rows: [what: string, place: ConfigPlace, expected: string[] | undefined][] = [
    ['beside the controller of the manifest', { environment: inPod, firstProcess: RUN, pid: 40 }, RUN.slice(2)],
    [
      'beside a controller whose flags come first',
      {
        environment: inPod,
        firstProcess: ['node', '--max-http-header-size=9000', 'dist/main.js', '--config', 'c', 'run'],
        pid: 40,
      },
      ['--config', 'c', 'run'],
    ],
    ['that is the controller', { environment: inPod, firstProcess: RUN, pid: 1 }, undefined],
    ['of a Job', { environment: inPod, firstProcess: ['node', '/app/dist/main.js', 'clean'], pid: 1 }, undefined],
    ['by hand in a Job', { environment: inPod, firstProcess: ['node', 'dist/main.js', 'clean'], pid: 9 }, undefined],
    ['of the shell of a Job', { environment: inPod, firstProcess: ['sh', '-c', 'archaware plan'], pid: 9 }, undefined],
    ['on a laptop', { environment: {}, firstProcess: ['/sbin/init'], pid: 9 }, undefined],
    ['on a system without /proc', { environment: {}, firstProcess: [], pid: 9 }, undefined],
    ['in a container outside Kubernetes', { environment: {}, firstProcess: RUN, pid: 9 }, undefined],
  ];
  for (const [what, place, expected] of rows)
    it(`${what} ${expected === undefined ? 'does not share' : 'shares'} the controller's container`, () =>
      expect(controllerWords(place)).to.deep.equal(expected));
});

describe('beside the controller', () => {
  const rows: [command: string, isOneNamespace: boolean, refusal: RegExp | undefined][] = [
    ['inspect', false, undefined],
    ['explain', false, undefined],
    ['status', false, undefined],
    ['check', false, undefined],
    ['plan', true, undefined],
    ['plan', false, /add -n NAMESPACE, or run it outside the cluster or as a Job/],
    ['report', true, /run it outside the cluster or as a Job/],
    ['clean', true, /run it outside the cluster or as a Job/],
  ];
  for (const [command, isOneNamespace, refusal] of rows) {
    const scope = isOneNamespace ? 'for one namespace' : 'for the cluster';
    it(`${command} ${scope} ${refusal === undefined ? 'runs' : 'does not run'}`, () => {
      const found = refusalBesideController(command, { isOneNamespace });
      if (refusal === undefined) expect(found).to.equal(undefined);
      else expect(found).to.match(refusal);
    });
  }

  it('clean ends with 3 and says what to do, and its help is printed', async () => {
    const refused = await runInProcess(['clean', '--yes'], { controllerWords: ['run'] });
    expect(refused).to.deep.equal({
      code: 3,
      stdout: '',
      stderr: "archaware: clean: does not run in the controller's container; run it outside the cluster or as a Job\n",
    });
    expect((await runInProcess(['clean', '--help'], { controllerWords: ['run'] })).code).to.equal(0);
  });
});

describe('without a command the program prints its help, and starts no controller', () => {
  const rows: [where: string, options: Parameters<typeof runInProcess>[1]][] = [
    ['in a checkout', {}],
    ['beside the controller', { controllerWords: ['run'] }],
    ['as a plug-in of kubectl', { program: 'kubectl archaware' }],
  ];
  for (const [where, options] of rows) {
    for (const words of [[], ['--log.level', 'debug']]) {
      it(`${where}: ${words.join(' ') || 'no word'}`, async () => {
        const { code, stdout, stderr } = await runInProcess(words, options);
        const program = options?.program ?? PROGRAM;
        expect([code, stdout.split('\n')[0], stderr]).to.deep.equal([0, `${program} COMMAND [flags]`, '']);
      });
    }
  }
});

describe('as a plug-in of kubectl, the program', () => {
  const rows: [executable: string, program: string][] = [
    ['node', 'archaware'],
    ['/usr/local/bin/kubectl-archaware', 'kubectl archaware'],
    ['kubectl-archaware', 'kubectl archaware'],
    ['C:\\Users\\me\\.krew\\bin\\kubectl-archaware.exe', 'kubectl archaware'],
    ['/opt/kubectl-archaware-old', 'archaware'],
  ];
  for (const [executable, program] of rows)
    it(`calls itself ${program} if it was started as ${executable}`, () =>
      expect(programOf(executable)).to.equal(program));

  const program = 'kubectl archaware';

  it('says so in help and errors', async () => {
    const help = await runInProcess(['inspect', '--help'], { program });
    expect(help.stdout)
      .to.match(/^kubectl archaware inspect IMAGE…/)
      .and.not.include('archaware-controller');
    const { code, stderr } = await runInProcess(['inspct'], { program });
    expect([code, stderr]).to.deep.equal([3, 'kubectl archaware: unknown command "inspct"; did you mean inspect?\n']);
  });
});
