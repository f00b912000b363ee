import { closeSync, openSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createLog } from '../../src/observability/log.ts';

/** A name that begins a line, colours it by an escape of two kinds, hides text, and turns its direction, also with a character of two units. */
const EVIL = 'a\nowned \u001b[31m\u009b31m\u00ad\u2028\u202e\u{e0001}';
const RAW = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]|^owned/mu;

describe('the log', () => {
  it('has no character that a terminal obeys, or that hides text, and a program reads the same', async () => {
    const lines: string[] = [];
    const log = await createLog({ level: 'info', format: 'json' }, { write: (line) => void lines.push(line) });
    log.warn({ secret: EVIL, err: new Error(EVIL) }, 'said');
    expect(lines.join('')).not.to.match(RAW);
    expect(JSON.parse(lines.join(''))).to.include({ secret: EVIL, err: EVIL });
  });

  it('has none for people either', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'archaware-log-'));
    const file = join(directory, 'log');
    const fd = openSync(file, 'w');
    const log = await createLog({ level: 'info', format: 'pretty' }, { fd, hasColors: false });
    log.warn({ secret: EVIL, list: [EVIL], err: new Error(EVIL) }, 'said');
    const text = readFileSync(file, 'utf8');
    closeSync(fd);
    await rm(directory, { recursive: true });
    expect(text).to.include('secret').and.not.to.match(RAW);
  });
});
