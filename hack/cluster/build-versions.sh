#!/usr/bin/env bash
# Builds the control plane of older versions of Kubernetes (kube-apiserver, kube-controller-manager, kube-scheduler), each into a
# folder of its own beside the binaries of build.sh, such as `1.30`. etcd, kubectl and kwok are those of build.sh. Only
# `npm run test:versions` needs them, so build.sh does not build them: a version takes about four minutes of two cores from
# nothing, and no time when up to date.
#
#   hack/cluster/build-versions.sh [VERSION...]   default: every tools/kubernetes-VERSION
#   ARCHAWARE_BIN                                 the folder of build.sh (default: ~/.cache/archaware/bin)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
programs=(kube-apiserver kube-controller-manager kube-scheduler)

fail() { echo "versions: $*" >&2; exit 1; }
hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }

up_to_date() {
  local name
  [[ -f $1/.stamp && $(< "$1/.stamp") == "$2" ]] || return 1
  for name in "${programs[@]}"; do [[ -x $1/$name ]] || return 1; done
}

build() {
  local minor=$1 module=$here/tools/kubernetes-$1 folder=$bin/$1 wanted version flags started=$SECONDS
  [[ -f $module/go.mod ]] || fail "there is no $module/go.mod"
  wanted=$(cat "$module"/go.{mod,sum} "$here/build-versions.sh" | hash)
  if up_to_date "$folder" "$wanted"; then
    echo "versions: Kubernetes $minor in $folder is up to date"
    return
  fi
  command -v go > /dev/null || fail 'Go is not on the PATH; install Go 1.24 or newer'
  mkdir -p "$folder"
  rm -f "$folder/.stamp"
  # Built beside their place and moved into it, so that an interrupted build leaves no partial binary.
  rm -rf "$folder/.build"
  cd "$module"
  version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
  echo "versions: building Kubernetes $version"
  # Without these the server calls itself v0.0.0-master, and nothing could tell which version it is.
  flags="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/client-go/pkg/version.gitVersion=$version"
  GOBIN=$folder/.build go install -trimpath -ldflags "-s -w $flags" "${programs[@]/#/k8s.io/kubernetes/cmd/}"
  mv -f "$folder"/.build/* "$folder"/
  rmdir "$folder/.build"
  echo "$wanted" > "$folder/.stamp"
  echo "versions: built Kubernetes $version into $folder in $((SECONDS - started)) s"
}

export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off
[[ $# -gt 0 ]] || set -- "$here"/tools/kubernetes-*/
set -- "${@%/}"
for minor in "$@"; do build "${minor##*/kubernetes-}"; done
