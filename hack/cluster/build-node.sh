#!/usr/bin/env bash
# Builds what a real node needs in addition to the control plane of build.sh, into the folder `node` beside its binaries:
#   - kubelet, kube-proxy, containerd with its shim and ctr, CoreDNS with few plugins, and the program of the small pods, from
#     the Go modules that tools/*/go.mod pin;
#   - runc, nftables, iptables and the CNI plugins, from Debian. They are installed into an overlay of / that is visible to
#     apt-get alone: the machine's own packages stay as they are.
# Needs Go, root, and a Debian or Ubuntu. A second run finds its stamps and ends at once.
#
#   ARCHAWARE_BIN   the folder of build.sh (default: ~/.cache/archaware/bin)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}/node
binaries=(kubelet kube-proxy containerd containerd-shim-runc-v2 ctr coredns pod-amd64 pod-arm64)
packages=(runc nftables iptables iproute2 containernetworking-plugins)

fail() { echo "node: $*" >&2; exit 1; }

mkdir -p "$bin"
# Built beside their place and moved into it, so that an interrupted build leaves no partial binary.
scratch=$(mktemp -d "$bin/.build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

wanted=$(cat "$here"/tools/{kubernetes,containerd,coredns}/go.{mod,sum} "$here"/tools/pod/go.mod "$here"/tools/{coredns,pod}/main.go "$here/build-node.sh" | sha256sum | cut -d ' ' -f 1)

up_to_date() {
  [[ -f $bin/.stamp && $(< "$bin/.stamp") == "$wanted" ]] || return 1
  local name
  for name in "${binaries[@]}"; do [[ -x $bin/$name ]] || return 1; done
}

module_version() { (cd "$here/tools/$1" && go list -m -f '{{.Version}}' "$2"); }

# build MODULE FLAGS PACKAGE...
build() {
  local module=$1 flags=$2
  shift 2
  echo "node: building $*"
  (cd "$here/tools/$module" && GOBIN=$scratch go install -trimpath -ldflags "-s -w $flags" "$@")
}

build_binaries() {
  command -v go > /dev/null || fail 'Go is not on the PATH; install Go 1.24 or newer (it fetches the release that go.mod names)'
  rm -f "$bin/.stamp"
  export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off
  local kubernetes containerd architecture
  kubernetes=$(module_version kubernetes k8s.io/kubernetes)
  containerd=$(module_version containerd github.com/containerd/containerd/v2)
  build kubernetes "-X k8s.io/component-base/version.gitVersion=$kubernetes -X k8s.io/client-go/pkg/version.gitVersion=$kubernetes" \
    k8s.io/kubernetes/cmd/kubelet k8s.io/kubernetes/cmd/kube-proxy
  # Without the snapshotters that need libraries of their own.
  GOFLAGS="$GOFLAGS -tags=no_btrfs,no_devmapper,no_zfs" build containerd "-X github.com/containerd/containerd/v2/version.Version=$containerd" \
    github.com/containerd/containerd/v2/cmd/{containerd,containerd-shim-runc-v2,ctr}
  build coredns '' .
  # For both architectures: one of them is the wrong one, which some tests need.
  for architecture in amd64 arm64; do
    (cd "$here/tools/pod" && GOOS=linux GOARCH=$architecture go build -trimpath -ldflags '-s -w' -o "$scratch/pod-$architecture" .)
  done
  mv -f "$scratch"/* "$bin"/
  echo "$wanted" > "$bin/.stamp"
}

# What apt-get writes lands in packages/upper. Its lists and downloads are not kept.
install_packages() {
  [[ $EUID -eq 0 ]] || fail 'only root can install the Debian packages (runc, nftables, CNI plugins): run it as root'
  command -v apt-get > /dev/null || fail 'the packages (runc, nftables, CNI plugins) come from Debian or Ubuntu: there is no apt-get here'
  echo "node: installing ${packages[*]} into $bin/packages"
  rm -rf "$bin/packages"
  mkdir -p "$bin/packages"/{upper,work,root}
  unshare --mount --propagation private bash -euo pipefail -c '
    root=$1/root
    mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$root"
    for directory in proc sys dev; do mount --rbind "/$directory" "$root/$directory"; done
    for directory in tmp var/lib/apt/lists var/cache/apt; do mount -t tmpfs tmpfs "$root/$directory"; done
    shift
    chroot "$root" apt-get update -qq
    DEBIAN_FRONTEND=noninteractive chroot "$root" apt-get install -y -qq --no-install-recommends "$@"
  ' bash "$bin/packages" "${packages[@]}" > "$bin/packages/apt.log" 2>&1 < /dev/null || {
    tail -n 20 "$bin/packages/apt.log" >&2
    fail "apt-get failed; all that it said: $bin/packages/apt.log"
  }
  echo "${packages[*]}" > "$bin/packages/.stamp"
}

started=$SECONDS
done=()
if ! up_to_date; then
  build_binaries
  done+=("binaries")
fi
if [[ ! -f $bin/packages/.stamp || $(< "$bin/packages/.stamp") != "${packages[*]}" ]]; then
  install_packages
  done+=("packages")
fi
if [[ ${#done[@]} -eq 0 ]]; then echo "node: all in $bin is up to date"; else echo "node: built ${done[*]} into $bin in $((SECONDS - started)) s"; fi
