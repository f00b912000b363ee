#!/usr/bin/env bash
# Tries another version of Kubernetes in this checkout: moves the tests to it (move-kubernetes.sh), runs the types and npm test, builds
# its control plane, and runs on it what depends on the version: for the main line the contract and every end-to-end test but those of
# the image and of the real node; for an older version test/versions. What the move changed stays in the work tree. Needs Go, and no root.
#
#   hack/cluster/try-kubernetes.sh VERSION    such as 1.38, 1.38.0-rc.1 or 1.36.4
#
# Exit codes: 0 all passed; 1 failed; 3 usage
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

if [[ $# -ne 1 || $1 == -* ]]; then
  sed -n 's/^#   //p' hack/cluster/try-kubernetes.sh >&2
  exit 3
fi
step() { printf '\n=== %s (after %d min)\n' "$*" $((SECONDS / 60)); }
pinned() { sed -nE 's/^\t?(require )?k8s\.io\/kubernetes v(1\.[^ ]+).*/\2/p' "hack/cluster/tools/$1/go.mod"; }

before=$(pinned kubernetes)
step "move to Kubernetes $1"
hack/cluster/move-kubernetes.sh "$1"
step "types, and npm test"
npm run --silent typecheck
npm test --silent
step "build of the control plane"
hack/cluster/build.sh
if [[ $(pinned kubernetes) != "$before" ]]; then
  step "contract and end-to-end tests on Kubernetes $(pinned kubernetes)"
  npm run --silent build
  npx tsx test/e2e/run/main.ts test/versions/.mocharc.main.json
else
  minor=$(cut -d . -f 1-2 <<< "$1")
  step "test/versions on Kubernetes $(pinned "kubernetes-$minor")"
  hack/cluster/build-versions.sh "$minor"
  npm run --silent test:versions -- "$minor"
fi
step "the end"
