// Mocha's spec reporter, and one line at the end that other programs can read: `N passed, N failed, N skipped`.
const { reporters } = require('mocha');

module.exports = class ClosingLine extends reporters.Spec {
  epilogue() {
    super.epilogue();
    const { passes, failures, pending } = this.stats;
    console.log(`${passes} passed, ${failures} failed, ${pending} skipped`);
  }
};
