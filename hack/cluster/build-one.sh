# Sourced by the scripts that build one program each, such as build-karpenter.sh.
#
# build_one NAME PACKAGE [MODULE FOLDER...]: builds PACKAGE of tools/NAME as NAME, and joins the kinds of its objects, which lie in
# these folders of MODULE, into NAME-crds.yaml. Both go into the folder of build.sh. A second run finds its stamp and ends at once.
set -euo pipefail

build_one() {
  local name=$1 package=$2 module=${3:-} here bin stamp wanted source started=$SECONDS folder file
  shift $(($# < 3 ? 2 : 3))
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
  stamp=$bin/.$name-stamp
  wanted=$({ find "$here/tools/$name" -type f -print0 | sort -z | xargs -0 cat; cat "${BASH_SOURCE[1]}" "${BASH_SOURCE[0]}"; } | hash)
  if [[ -f $stamp && $(< "$stamp") == "$wanted" && -x $bin/$name && (-z $module || -f $bin/$name-crds.yaml) ]]; then
    echo "$name: the binary in $bin is up to date"
    return
  fi
  command -v go > /dev/null || { echo "$name: Go is not on the PATH; install the release that go.mod names, or a newer one" >&2; exit 1; }

  mkdir -p "$bin"
  rm -f "$stamp"
  # Built beside its place and moved into it, so that an interrupted build leaves no partial binary.
  scratch=$(mktemp -d "$bin/.$name.XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off

  echo "$name: building"
  go build -C "$here/tools/$name" -trimpath -ldflags '-s -w' -o "$scratch/$name" "$package"
  if [[ -n $module ]]; then
    source=$(go list -C "$here/tools/$name" -m -f '{{.Dir}}' "$module")
    for folder in "$@"; do
      for file in "$source/$folder"/*.yaml; do
        printf -- '---\n'
        cat "$file"
      done
    done > "$scratch/$name-crds.yaml"
  fi

  mv -f "$scratch"/* "$bin"/
  rmdir "$scratch"
  echo "$wanted" > "$stamp"
  echo "$name: built into $bin in $((SECONDS - started)) s"
}

hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }
