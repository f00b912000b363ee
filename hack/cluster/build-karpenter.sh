#!/usr/bin/env bash
# Builds Karpenter with its kwok provider, and the kinds of its objects, into the folder of build.sh. Only the tests of the
# autoscalers need them, so build.sh does not build them: it takes about three minutes of CPU time from nothing, and no time
# when up to date.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
module=$here/tools/karpenter
stamp=$bin/.karpenter-stamp

hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }

wanted=$(cat "$module"/go.mod "$module"/go.sum "$here/build-karpenter.sh" | hash)
if [[ -f $stamp && $(< "$stamp") == "$wanted" && -x $bin/karpenter && -f $bin/karpenter-crds.yaml ]]; then
  echo "karpenter: the binary in $bin is up to date"
  exit 0
fi
command -v go > /dev/null || { echo 'karpenter: Go is not on the PATH; install the release that go.mod names, or a newer one' >&2; exit 1; }

mkdir -p "$bin"
rm -f "$stamp"
# Built beside its place and moved into it, so that a build that was broken off leaves no half a binary.
scratch=$(mktemp -d "$bin/.karpenter.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off

started=$SECONDS
echo 'karpenter: building'
# The package is called kwok, as the program is that plays the kubelets.
(cd "$module" && go build -trimpath -ldflags '-s -w' -o "$scratch/karpenter" sigs.k8s.io/karpenter/kwok)
source=$(cd "$module" && go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)
for file in "$source"/{pkg,kwok}/apis/crds/*.yaml; do
  printf -- '---\n'
  cat "$file"
done > "$scratch/karpenter-crds.yaml"

mv -f "$scratch"/* "$bin"/
echo "$wanted" > "$stamp"
echo "karpenter: built into $bin in $((SECONDS - started)) s"
