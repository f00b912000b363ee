import { mkdir, readFile, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../src/kit/clock.ts';
import { watchFiles } from '../../src/kit/watch-files.ts';
import { folderForEach } from '../support/folder.ts';
import { mount } from '../support/mounted.ts';
import { needsPosix, replaceFile } from '../support/platforms.ts';

/** Checks follow each other at once. */
const pace = { clock: systemClock, intervalMs: 2 };

describe('watched files', () => {
  let end: AbortController;
  let calls: number;
  let checks: number;
  beforeEach(() => {
    [end, calls, checks] = [new AbortController(), 0, 0];
  });
  afterEach(() => end.abort());
  const folder = folderForEach();

  const at = (...names: string[]): string => folder.at(join(...names));
  /** Writes a file in one step. */
  const put = async (file: string, text: string): Promise<void> => {
    await writeFile(`${file}.new`, text);
    await replaceFile(`${file}.new`, file);
  };
  const until = async (condition: () => boolean): Promise<void> => {
    while (!condition()) await new Promise((resolve) => setImmediate(resolve));
  };
  /** Waits until a check that began after now has ended. */
  const checked = (): Promise<void> => {
    const from = checks;
    return until(() => checks >= from + 2);
  };

  /** Watches, and waits for the first look: each check calls `paths` once. */
  async function watch(
    paths: string[],
    onChange: () => void | Promise<void> = () => undefined,
    onError?: (error: unknown) => void,
  ) {
    const counting = () => {
      checks += 1;
      return paths;
    };
    const count = (isChanged: boolean): void | Promise<void> => {
      if (!isChanged) return;
      calls += 1;
      return onChange();
    };
    watchFiles(counting, count, { ...pace, signal: end.signal, ...(onError === undefined ? {} : { onError }) });
    await checked();
  }

  const changes: [what: string, change: () => Promise<void>][] = [
    ['the contents of a file change', () => writeFile(at('file'), 'other')],
    ['the contents of a file change but not its length', () => writeFile(at('file'), 'b')],
    ['a file is replaced', () => put(at('file'), 'b')],
    ['a file goes', () => rm(at('file'))],
    ['a file comes', () => writeFile(at('missing'), '')],
    ['a directory replaces a file', () => rm(at('file')).then(() => mkdir(at('file')))],
    ['a file in a directory changes', () => writeFile(at('certs.d', 'a.toml'), 'b')],
    ['a file is added to a directory', () => writeFile(at('certs.d', 'b.toml'), 'b')],
    ['a file in a directory is renamed', () => rename(at('certs.d', 'a.toml'), at('certs.d', 'b.toml'))],
    ['a file two levels deep changes', () => writeFile(at('certs.d', 'docker.io', 'hosts.toml'), 'b')],
    ['a file in a directory is removed', () => rename(at('certs.d', 'a.toml'), at('gone'))],
    ['a directory in a directory is removed', () => rename(at('certs.d', 'docker.io'), at('gone'))],
    ['the directory goes', () => rm(at('certs.d'), { recursive: true })],
    ['a file becomes unreadable', () => rm(at('file')).then(() => symlink('file', at('file')))],
  ];
  for (const [what, change] of changes) {
    it(`lead to a call when ${what}, and then to no more`, async () => {
      await mkdir(at('certs.d', 'docker.io'), { recursive: true });
      for (const file of [at('file'), at('certs.d', 'a.toml'), at('certs.d', 'docker.io', 'hosts.toml')]) {
        await writeFile(file, 'a');
      }
      await watch([at('file'), at('missing'), at('certs.d')]);
      expect(calls).to.equal(0);
      await change();
      await until(() => calls > 0);
      await checked();
      // A change in several steps may have been seen between them.
      const seen = calls;
      await checked();
      expect(calls).to.equal(seen);
    });
  }

  const same: [what: string, change: () => Promise<void>][] = [
    ['is touched', () => utimes(at('file'), 0, 0)],
    ['is replaced by an equal one', () => put(at('file'), 'a')],
    ['has a neighbour', () => writeFile(at('neighbour'), 'a')],
    ['lies beside deeper ones', () => writeFile(at('certs.d', 'a', 'b', 'deep'), 'a')],
  ];
  for (const [what, change] of same) {
    it(`count as unchanged when one of them ${what}`, async () => {
      await mkdir(at('certs.d', 'a', 'b'), { recursive: true });
      await writeFile(at('file'), 'a');
      await watch([at('file'), at('certs.d')]);
      await change();
      await checked();
      expect(calls).to.equal(0);
    });
  }

  it('lead to a call after being unchanged for a while', async () => {
    await writeFile(at('file'), 'a');
    const { now } = Date;
    Date.now = () => now() + 60_000;
    try {
      await watch([at('file')]);
      await put(at('file'), 'b');
      await until(() => calls === 1);
      await writeFile(at('file'), 'c');
      await until(() => calls > 1);
    } finally {
      Date.now = now;
    }
  });

  it('may be a Secret that the kubelet mounts and whose links are swapped', async function () {
    needsPosix(this, 'link');
    const swap = (text: string) => mount(folder.at(), { 'config.json': text });
    await swap('old');
    await watch([folder.at(), at('config.json')]);
    await swap('new');
    await until(() => calls === 1);
    // What changes while the files are being read leads to another call.
    await checked();
    await swap('new');
    await checked();
    expect(calls).to.equal(1);
  });

  it('that change while they are being read are read again, one after the other', async () => {
    const releases: (() => void)[] = [];
    await watch([at('file')], () => new Promise((resolve) => releases.push(resolve)));
    await put(at('file'), '1');
    await until(() => calls === 1);
    const from = checks;
    await put(at('file'), '2');
    for (let turn = 0; turn < 100; turn += 1) await stat(folder.at());
    expect([calls, checks]).to.deep.equal([1, from]);
    releases[0]?.();
    await until(() => calls === 2);
    releases[1]?.();
    await checked();
    expect(calls).to.equal(2);
  });

  it('that are for a moment as no check saw them, just when they are read, are read again', async () => {
    await put(at('file'), '0');
    let read = '';
    await watch([at('file')], async () => {
      // Only the first reading meets another content, which is gone before the next check.
      if (calls === 1) await put(at('file'), 'for a moment');
      read = await readFile(at('file'), 'utf8');
      if (calls === 1) await put(at('file'), '1');
    });
    await put(at('file'), '1');
    await until(() => calls >= 2 && read === '1');
    await checked();
    expect(calls).to.equal(2);
  });

  it('are watched on after an error, which is passed to onError', async () => {
    const errors: unknown[] = [];
    const throwing = (): Promise<void> | void => {
      if (calls === 1) throw new Error('thrown');
      return Promise.reject(new Error('rejected'));
    };
    await watch([at('file')], throwing, (error) => errors.push(error));
    await put(at('file'), '1');
    await until(() => errors.length === 1);
    await put(at('file'), '2');
    await until(() => errors.length === 2);
    expect(errors.map(String)).to.deep.equal(['Error: thrown', 'Error: rejected']);
  });

  it('are read once when the watch has begun, so that no change before it is missed', async () => {
    await put(at('file'), 'before');
    const events: string[] = [];
    const paths = () => {
      events.push('look');
      return [at('file')];
    };
    const onRead = async (isChanged: boolean) => {
      events.push(`${isChanged ? 'changed' : 'first'}: ${await readFile(at('file'), 'utf8')}`);
      if (!isChanged) await put(at('file'), 'during');
    };
    await watchFiles(paths, onRead, { ...pace, signal: end.signal });
    // On a slow machine there may be another look before the file is read.
    expect(events.filter((event, index) => event !== 'look' || index === 0).slice(0, 2)).to.deep.equal([
      'look',
      'first: before',
    ]);
    await until(() => events.includes('changed: during'));
    expect(events.filter((event) => event.startsWith('first'))).to.have.length(1);
  });

  it('are watched although the first reading fails, whose error the caller gets', async () => {
    const errors: unknown[] = [];
    const failed = await watchFiles(
      () => [at('file')],
      (isChanged) => {
        calls += 1;
        throw new Error(isChanged ? 'later' : 'first');
      },
      { ...pace, signal: end.signal, onError: (error) => errors.push(error) },
    ).catch(String);
    expect([failed, calls, errors]).to.deep.equal(['Error: first', 1, []]);
    await put(at('file'), '1');
    await until(() => errors.length === 1);
    expect(String(errors[0])).to.equal('Error: later');
  });

  it('are no longer watched once the signal aborts', async () => {
    await watch([at('file')]);
    end.abort();
    const from = checks;
    await put(at('file'), '1');
    for (let turn = 0; turn < 100; turn += 1) await stat(folder.at());
    expect([calls, checks]).to.deep.equal([0, from]);
  });
});
