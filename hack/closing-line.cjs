// Mocha's spec reporter, and one line at the end that other programs can read: `N passed, N failed, N skipped`.
const { existsSync, readFileSync } = require('node:fs');
const { SourceMap } = require('node:module');
const { relative, resolve } = require('node:path');
const { reporters } = require('mocha');

/** The stack with the places in the sources: to have Node.js map each stack costs the whole run a twelfth of its time. */
function mapped(stack) {
  return stack?.replaceAll(/(?:file:\/\/)?([^\s()]+\.mjs):(\d+):(\d+)/g, (place, path, line, column) => {
    const file = resolve(path);
    if (!existsSync(`${file}.map`)) return place;
    const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
    const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1);
    if (originalSource === undefined) return place;
    return `${relative('.', resolve(file, '..', originalSource))}:${originalLine + 1}:${originalColumn + 1}`;
  });
}

module.exports = class ClosingLine extends reporters.Spec {
  epilogue() {
    for (const { err } of this.failures) if (err) err.stack = mapped(err.stack);
    super.epilogue();
    const { passes, failures, pending } = this.stats;
    console.log(`${passes} passed, ${failures} failed, ${pending} skipped`);
  }
};
