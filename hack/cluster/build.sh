#!/usr/bin/env bash
# Builds the real cluster of the end-to-end tests from published Go modules: the control plane, etcd, kwok, a registry,
# crane, promtool, promquery and helm, into one folder. Needs Go and coreutils. A second run finds its stamp and ends at once.
#
#   ARCHAWARE_BIN       the folder (default: ~/.cache/archaware/bin)
#   KUBEBUILDER_ASSETS  a folder with kube-apiserver, etcd and kubectl, which are then taken from there
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
assets=${KUBEBUILDER_ASSETS:-}
binaries=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok registry crane promtool promquery helm)

hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }

# The node and Karpenter have builds of their own.
wanted=$({ cat "$here"/tools/{helm,kubernetes,kwok,prometheus,registry}/go.{mod,sum} "$here/tools/prometheus/promquery/main.go" "$here/build.sh"; echo "$assets"; } | hash)

up_to_date() {
  [[ -f $bin/.stamp && $(< "$bin/.stamp") == "$wanted" && -f $bin/kwok-stages.yaml ]] || return 1
  local name
  for name in "${binaries[@]}"; do [[ -x $bin/$name ]] || return 1; done
}

if up_to_date; then
  echo "cluster: the binaries in $bin are up to date"
  exit 0
fi
command -v go > /dev/null || { echo 'cluster: Go is not on the PATH; install Go 1.24 or newer (it fetches the release that go.mod names)' >&2; exit 1; }

mkdir -p "$bin"
rm -f "$bin/.stamp"
# Built beside their place and moved into it, so that an interrupted build leaves no partial binary.
scratch=$(mktemp -d "$bin/.build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export CGO_ENABLED=0 GOBIN=$scratch GOFLAGS=-mod=readonly GOWORK=off

# build MODULE LDFLAGS PACKAGE...: installs the packages of tools/MODULE, except those that the assets have.
build() {
  local module=$1 flags=$2 package name packages=()
  shift 2
  for package in "$@"; do
    name=$(binary_name "$package")
    if [[ -n $assets && -x $assets/$name ]]; then ln -s "$assets/$name" "$scratch/$name"; else packages+=("$package"); fi
  done
  [[ ${#packages[@]} -gt 0 ]] || return 0
  echo "cluster: building $(for package in "${packages[@]}"; do printf '%s ' "$(binary_name "$package")"; done)"
  (cd "$here/tools/$module" && go install -trimpath -ldflags "-s -w $flags" "${packages[@]}")
}

# etcd's main package is called server, and so is what `go install` makes of it.
binary_name() { case $1 in go.etcd.io/etcd/server/v3) echo etcd ;; *) basename "$1" ;; esac; }

module_field() { (cd "$here/tools/$1" && go list -m -f "{{.$3}}" "$2"); }

started=$SECONDS
kubernetes=$(module_field kubernetes k8s.io/kubernetes Version)
# Without these the server calls itself v0.0.0-master and kubectl warns about the difference.
build kubernetes "-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes" \
  go.etcd.io/etcd/server/v3 \
  k8s.io/kubernetes/cmd/kube-{apiserver,controller-manager,scheduler} k8s.io/kubernetes/cmd/kubectl
build kwok '' sigs.k8s.io/kwok/cmd/kwok
build registry '' github.com/distribution/distribution/v3/cmd/registry github.com/google/go-containerregistry/cmd/crane
# Without the service discoveries, which bring the library of every cloud.
GOFLAGS="$GOFLAGS -tags=remove_all_sd" build prometheus '' github.com/prometheus/prometheus/cmd/promtool ./promquery
build helm '' helm.sh/helm/v4/cmd/helm
if [[ -f $scratch/server ]]; then mv "$scratch/server" "$scratch/etcd"; fi

# kwok's stages, which say how a node becomes Ready and a bound pod Running, lie in its module as several files.
stages=$(module_field kwok sigs.k8s.io/kwok Dir)/kustomize/stage
for file in "$stages"/{node/fast/node,node/heartbeat-with-lease/node,pod/fast/pod}-*.yaml; do
  printf -- '---\n'
  cat "$file"
done > "$scratch/kwok-stages.yaml"

mv -f "$scratch"/* "$bin"/
echo "$wanted" > "$bin/.stamp"
echo "cluster: built into $bin in $((SECONDS - started)) s"
