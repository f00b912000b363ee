#!/usr/bin/env bash
# All that CI runs, in one command. Needs Node.js, the installed packages (npm ci), and Go for the real control plane.
#
#   hack/verify.sh            what CI runs
#   hack/verify.sh --install  the same, and npm ci before the two commands of the README, as .ci/run does
#   hack/verify.sh --all      and npm test on Node.js 24, 20 rolling restarts on the real node, 15,000 random indexes, test/long, the
#                             faults, Karpenter, cert-manager and other neighbours, Chromium, older versions of Kubernetes, the single
#                             executables, and the rehearsal of a release
#
# The real node needs root and a Debian or Ubuntu: without them its tests are skipped, which counts as a failure where CI is set, unless
# ARCHAWARE_WITHOUT_NODE has the reason: it is printed after the numbers. GitHub's runners cannot run the node.
set -euo pipefail
cd "$(dirname "$0")/.."
all=
demo='npm run demo'
test='npm test'
case ${1:-} in
  '') ;;
  --all) all=yes ;;
  --install)
    demo='npm ci && npm run demo'
    test='npm ci && npm test'
    ;;
  *)
    sed -n 's/^#   //p' "$0" >&2
    exit 3
    ;;
esac

# Each step begins with the time since the start, so that a log shows what takes long.
step() { printf '\n=== %s (after %d min %d s)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# The control plane and the node take some minutes to build on a new machine, so the build starts first, with low priority.
build_log=$(mktemp)
nice -n 10 bash -c 'hack/cluster/build.sh && { [[ -n ${ARCHAWARE_WITHOUT_NODE:-} ]] || hack/cluster/build-node.sh || [[ -z ${CI:-} ]]; }' >"$build_log" 2>&1 &
build=$!
trap 'kill $build 2>/dev/null || true; rm -f "$build_log"' EXIT

step "$demo"
bash -c "$demo"
echo 'demo: 1 passed, 0 failed, 0 skipped'
step "$test"
bash -c "$test"
step "tests of every case, and more histories of the simulation"
SIMULATION_SEED=${SIMULATION_SEED:-$(date +%s)} SIMULATION_RUNS=150 npm run test:thorough
step lint
npm run --silent lint
npm run --silent lint:workflows
step types
npx tsc
step "build of the cluster"
if ! wait "$build"; then
  cat "$build_log"
  echo 'cluster: 0 passed, 1 failed, 0 skipped'
  exit 1
fi
grep -v '^npm' "$build_log" | tail -n 6
echo 'cluster: 1 passed, 0 failed, 0 skipped'

step "contract and end to end, on the real control plane and a real node"
ARCHAWARE_RESTARTS=${all:+20} ARCHAWARE_INDEXES=${all:+15000} npm run test:e2e
step "what a release refuses, and its chart and manifest from a registry"
npm run test:release:quick
if [[ -n $all ]]; then
  step "test, on the Node.js of the image"
  npm run test:node24
  step "what takes long, on a real node"
  npm run test:long
  step "faults, on the real control plane"
  npm run test:faults
  step "Karpenter, on the real control plane"
  hack/cluster/build-karpenter.sh
  WRITE_TABLE=1 npm run test:autoscalers
  step "neighbours: cert-manager on a real node; Helm 3 and 4, kubectl, Argo CD, Flux, Argo Rollouts, the Vertical Pod Autoscaler, Istio's injector, Kueue, Kyverno, policy-controller"
  hack/cluster/build-cert-manager.sh
  hack/cluster/build-neighbours.sh
  hack/cluster/build-image-policies.sh
  hack/cluster/build-rollouts.sh
  hack/cluster/build-vpa-updater.sh
  hack/cluster/build-istio.sh
  hack/cluster/build-kueue.sh
  npm run test:neighbours
  step "the page of report -o html, in Chromium"
  hack/browser.sh
  npm run test:browser
  step "older versions of Kubernetes"
  hack/cluster/build-versions.sh
  npm run test:versions
  step "single executables for six platforms"
  npm run test:executables
  step "the rehearsal of a release, on a real node"
  hack/release/build-tools.sh
  hack/cluster/build-foreign.sh
  npm run test:release
fi
step "the end"
