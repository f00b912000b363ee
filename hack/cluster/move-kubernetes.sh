#!/usr/bin/env bash
# Moves the tests to another version of Kubernetes. A version of the next minor becomes the main line: the one that the
# end-to-end tests run on; the old main line becomes an older one, which `npm run test:versions` tries. A version of a minor that
# the tests run on already becomes its patch version. Writes the modules below hack/cluster/tools, hack/cluster/versions/versions.json,
# the table of docs/support.md, and the texts that hack/cluster/versions/mentions.ts lists. Needs Go and the installed packages (npm ci).
#
#   hack/cluster/move-kubernetes.sh VERSION [--drop MINOR]...   1.38 (its newest patch), 1.38.1 or 1.38.0-rc.1; --drop: an older
#                                                               minor, or the old main line, that is no longer tried
#
# Exit codes: 0 done; 1 failed; 3 usage
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() { sed -n 's/^#   //p' hack/cluster/move-kubernetes.sh; }
if [[ $# -eq 0 ]]; then usage >&2; exit 3; fi
if [[ $1 == -h || $1 == --help ]]; then usage; exit 0; fi
[[ -x node_modules/.bin/tsx ]] || { echo 'move-kubernetes.sh: the packages are not installed: run npm ci' >&2; exit 1; }
exec node_modules/.bin/tsx hack/cluster/versions/main.ts "$@"
