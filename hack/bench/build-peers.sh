#!/usr/bin/env bash
# Builds Noe for `npm run bench`, which then measures it beside archaware. Needs Go and a checkout of github.com/adevinta/noe.
#
#   hack/bench/build-peers.sh DIRECTORY
#
#   ARCHAWARE_BIN   where the binary goes (default: ~/.cache/archaware/bin, as the other binaries of hack/cluster)
set -euo pipefail
if [[ $# != 1 || ! -f $1/cmd/noe/main.go ]]; then
  echo "usage: hack/bench/build-peers.sh DIRECTORY, a checkout of github.com/adevinta/noe" >&2
  exit 3
fi
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
mkdir -p "$bin"
cd "$1"
CGO_ENABLED=0 go build -trimpath -o "$bin/noe" ./cmd/noe
echo "$bin/noe"
