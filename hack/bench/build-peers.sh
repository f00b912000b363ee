#!/usr/bin/env bash
# Builds other programs for `npm run bench`, which then measures them beside archaware. Needs Go.
#
#   hack/bench/build-peers.sh DIRECTORY
#
#   DIRECTORY       a checkout of github.com/adevinta/noe or of github.com/outrigger-project/multiarch-tuning-operator
#   ARCHAWARE_BIN   where the binary goes (default: ~/.cache/archaware/bin, as the other binaries of hack/cluster)
set -euo pipefail
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
crds=config/crd/bases
if [[ $# == 1 && -f $1/cmd/noe/main.go ]]; then
  program=noe package=./cmd/noe tags=
elif [[ $# == 1 && -f $1/$crds/multiarch.openshift.io_podplacementconfigs.yaml ]]; then
  # Without the tag it needs a C library, for signatures that the benchmark does not have.
  program=mto package=./cmd tags=containers_image_openpgp
else
  echo "usage: hack/bench/build-peers.sh DIRECTORY, a checkout of Noe or of the multiarch-tuning-operator" >&2
  exit 3
fi
mkdir -p "$bin"
cd "$1"
CGO_ENABLED=0 go build -trimpath -tags "$tags" -o "$bin/$program" "$package"
[[ $program != mto ]] || cat "$crds"/*.yaml > "$bin/mto-crds.yaml"
echo "$bin/$program"
