#!/usr/bin/env bash
# Types, lint, exports that nobody imports, workflows, and generated files: what to run before a commit. Generated files that did not
# match their sources are written again and named.
set -euo pipefail
cd "$(dirname "$0")/.."
npm run --silent typecheck
npm run --silent lint
npm run --silent lint:workflows
sums() { git ls-files --cached --others --exclude-standard -z | xargs -0 sha256sum 2>/dev/null || true; }
before=$(sums)
npm run --silent generate >/dev/null
changed=$(diff <(printf '%s\n' "$before") <(sums) | sed -nE 's/^> [0-9a-f]+  //p')
if [[ -n $changed ]]; then
  printf 'check: these generated files did not match their sources and were written again:\n%s\n' "$changed" >&2
  exit 1
fi
