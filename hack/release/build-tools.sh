#!/usr/bin/env bash
# Builds what hack/release.sh pushes and signs with, crane and cosign, from published Go modules. A second run finds its stamp and ends
# at once.
#
#   ARCHAWARE_BIN   the folder above the one of these tools, release/ (default: ~/.cache/archaware/bin)
set -euo pipefail

usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
case "${1:-}" in
  '') ;;
  -h | --help) usage && exit 0 ;;
  *) echo "build-tools.sh: got \"$1\", expected no argument" >&2 && usage >&2 && exit 3 ;;
esac

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
modules=("$here/tools/cosign" "$here/../cluster/tools/registry")
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}/release

hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }
wanted=$(cat "${modules[@]/%//go.mod}" "${modules[@]/%//go.sum}" "${BASH_SOURCE[0]}" | hash)
if [[ -f $bin/.stamp && $(< "$bin/.stamp") == "$wanted" && -x $bin/cosign && -x $bin/crane ]]; then
  echo "release: the tools in $bin are up to date"
  exit 0
fi
command -v go > /dev/null || { echo 'build-tools.sh: Go is not on the PATH; install Go 1.24 or newer (it fetches the release that go.mod names)' >&2; exit 1; }

started=$SECONDS
mkdir -p "$bin"
rm -f "$bin/.stamp"
# Built beside their place and moved into it, so that an interrupted build leaves no partial binary.
scratch=$(mktemp -d "$bin/.build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export CGO_ENABLED=0 GOBIN=$scratch GOFLAGS=-mod=readonly GOWORK=off

echo 'release: building crane and cosign'
(cd "${modules[1]}" && go install -trimpath -ldflags '-s -w' github.com/google/go-containerregistry/cmd/crane)
version=$(cd "${modules[0]}" && go list -m -f '{{.Version}}' github.com/sigstore/cosign/v3)
(cd "${modules[0]}" && go install -trimpath -ldflags "-s -w -X sigs.k8s.io/release-utils/version.gitVersion=$version" github.com/sigstore/cosign/v3/cmd/cosign)

mv -f "$scratch"/* "$bin"/
echo "$wanted" > "$bin/.stamp"
echo "release: built into $bin in $((SECONDS - started)) s"
