#!/usr/bin/env bash
# Builds cert-manager's controllers (tools/cert-manager) and the kinds of its objects into the folder of build.sh. Only
# `npm run test:neighbours` needs them, so build.sh does not build them.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
module=$here/tools/cert-manager
stamp=$bin/.cert-manager-stamp

hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }

wanted=$(cat "$module"/go.{mod,sum} "$module/main.go" "$here/build-cert-manager.sh" | hash)
if [[ -f $stamp && $(< "$stamp") == "$wanted" && -x $bin/cert-manager && -f $bin/cert-manager-crds.yaml ]]; then
  echo "cert-manager: the binary in $bin is up to date"
  exit 0
fi
command -v go > /dev/null || { echo 'cert-manager: Go is not on the PATH; install the release that go.mod names, or a newer one' >&2; exit 1; }

mkdir -p "$bin"
rm -f "$stamp"
# Built beside its place and moved into it, so that a build that was broken off leaves no half a binary.
scratch=$(mktemp -d "$bin/.cert-manager.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off

started=$SECONDS
echo 'cert-manager: building'
cd "$module"
go build -trimpath -ldflags '-s -w' -o "$scratch/cert-manager" .
source=$(go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager)
for file in "$source"/deploy/crds/*.yaml; do
  printf -- '---\n'
  cat "$file"
done > "$scratch/cert-manager-crds.yaml"

mv -f "$scratch"/* "$bin"/
echo "$wanted" > "$stamp"
echo "cert-manager: built into $bin in $((SECONDS - started)) s"
