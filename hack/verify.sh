#!/usr/bin/env bash
# All that CI runs, in one command. Needs Node.js, the installed packages (npm ci), Go for the real control plane, and root for
# the real node: without it the tests on that node are skipped, which counts as a failure where CI is set.
#
#   hack/verify.sh        what CI runs
#   hack/verify.sh --all  and what takes too long for each change: 20 rolling restarts instead of 3, test/long, and Karpenter
set -euo pipefail
cd "$(dirname "$0")/.."
all=
case ${1:-} in
  '') ;;
  --all) all=yes ;;
  *)
    sed -n 's/^#   //p' "$0" >&2
    exit 3
    ;;
esac

step() { printf '\n=== %s\n' "$*"; }

build_cluster() {
  hack/cluster/build.sh
  hack/cluster/build-node.sh || [[ -z ${CI:-} ]]
}

# The control plane and the node take eleven minutes to build on a new machine: they begin first, and give way to what runs
# beside them.
build_log=$(mktemp)
export -f build_cluster
nice -n 10 bash -euo pipefail -c build_cluster >"$build_log" 2>&1 &
build=$!
trap 'kill $build 2>/dev/null || true; rm -f "$build_log"' EXIT

step lint
npx biome ci --error-on-warnings
step types
npx tsc
step "build of the cluster"
if ! wait "$build"; then
  cat "$build_log"
  echo 'cluster: 0 passed, 1 failed, 0 skipped'
  exit 1
fi
tail -n 4 "$build_log"
echo 'cluster: 1 passed, 0 failed, 0 skipped'

step test
npm test
step demo
npm run --silent demo
echo 'demo: 1 passed, 0 failed, 0 skipped'
step "contract and end to end, on the real control plane and a real node"
ARCHAWARE_RESTARTS=${all:+20} npm run test:e2e
if [[ -n $all ]]; then
  step "what takes long, on a real node"
  npm run test:long
  step "Karpenter, on the real control plane"
  hack/cluster/build-karpenter.sh
  WRITE_TABLE=1 npm run test:autoscalers
fi
