import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { tagAs } from '../../hack/release/push.ts';

const digest = (digit: string) => `sha256:${digit.repeat(64)}`;

/** Stands in for crane: the tag is in a file. */
const CRANE = `#!/usr/bin/env bash
case $1 in
  digest) cat "\${0%/*}/tag" 2> /dev/null || { echo 'Error: GET: MANIFEST_UNKNOWN: manifest unknown' >&2; exit 1; } ;;
  tag) echo "\${2#*@}" > "\${0%/*}/tag" ;;
esac
`;

describe('the tag of a release', () => {
  const { ARCHAWARE_BIN } = process.env;
  let folder: string;
  const tag = () => join(folder, 'release/tag');

  beforeEach(function () {
    if (process.platform === 'win32') this.skip();
    folder = mkdtempSync(join(tmpdir(), 'archaware-tag-'));
    mkdirSync(join(folder, 'release'));
    writeFileSync(join(folder, 'release/crane'), CRANE, { mode: 0o755 });
    process.env.ARCHAWARE_BIN = folder;
  });

  afterEach(() => {
    if (ARCHAWARE_BIN === undefined) delete process.env.ARCHAWARE_BIN;
    else process.env.ARCHAWARE_BIN = ARCHAWARE_BIN;
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  it('is written where there is none, and again', async () => {
    await tagAs('registry.test/x', digest('a'), '0.2.0');
    await tagAs('registry.test/x', digest('a'), '0.2.0');
    expect(readFileSync(tag(), 'utf8')).to.equal(`${digest('a')}\n`);
  });

  it('stays if it got another digest since the checks', async () => {
    writeFileSync(tag(), `${digest('b')}\n`);
    const error: unknown = await tagAs('registry.test/x', digest('a'), '0.2.0').catch((thrown: unknown) => thrown);
    expect(String(error)).to.include('registry.test/x:0.2.0 already exists with another digest');
    expect(readFileSync(tag(), 'utf8')).to.equal(`${digest('b')}\n`);
  });
});
