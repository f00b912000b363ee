#!/usr/bin/env bash
# Builds the image of a source tree for every platform. hack/build.sh and hack/release.sh call it.
set -euo pipefail

platforms=(linux/amd64 linux/arm64 linux/ppc64le linux/s390x)

usage() {
  cat <<'TEXT'
usage: hack/image/build.sh CONTEXT DESTINATION [FLAG...]

Builds the source tree CONTEXT for linux/amd64, arm64, ppc64le and s390x with buildah or docker buildx, writes the image index to
DESTINATION and prints its digest, if it has every platform. The flags are passed to the builder, for example --label NAME=VALUE. Nothing is emulated.

DESTINATION is docker://REFERENCE (loopback hosts: plain http), or oci:DIRECTORY for an OCI image layout, which must not exist yet.

  SOURCE_DATE_EPOCH   the time of everything in the image, in seconds; required

Exit codes: 0 done, 1 failed, 3 usage.
TEXT
}

fail() { # CODE MESSAGE
  echo "build.sh: $2" >&2
  exit "$1"
}

case "${1:-}" in -h | --help) usage && exit 0 ;; esac
if [ $# -lt 2 ]; then
  usage >&2
  exit 3
fi
context=$1
destination=$2
arguments=("${@:3}")
[[ $destination =~ ^(docker://|oci:). ]] || fail 3 "DESTINATION \"$destination\": expected docker://REFERENCE or oci:DIRECTORY"
[[ ${SOURCE_DATE_EPOCH:-} =~ ^[0-9]+$ ]] || fail 3 'SOURCE_DATE_EPOCH is not set: the time of the commit, in seconds'

if command -v buildah > /dev/null; then
  builder=buildah
elif docker buildx inspect > /dev/null 2>&1; then
  builder=buildx
else
  fail 1 'neither buildah nor docker buildx was found: install one (apt-get install buildah)'
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Fails unless the index, from stdin, has every platform. A cache that finds equal layers takes one platform for another.
has_all() {
  local missing
  missing=$(node -e '
    const { manifests } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
    const names = (manifests ?? []).map(({ platform }) => `${platform?.os}/${platform?.architecture}`);
    console.log(process.argv.slice(1).filter((name) => !names.includes(name)).join(", "));
  ' "${platforms[@]}") || fail 1 "the index of ${destination#docker://} could not be read"
  [ -z "$missing" ] || fail 1 "the index of ${destination#docker://} lacks $missing: are the layers of the base image the same for several platforms?"
}

case $builder in
  buildah)
    # A separate storage: leftovers of an earlier build would be found there and would change the digest.
    own=(buildah --root "$work/storage" --runroot "$work/run")
    # Without root some of its files belong to other users, of whom only buildah can become one.
    trap '"${own[@]}" rmi --all --force > /dev/null 2>&1 || true; rm -rf "$work" 2> /dev/null || buildah unshare rm -rf "$work" || true' EXIT
    # buildah 1.28 does not set BUILDPLATFORM by itself.
    arguments+=(--build-arg "BUILDPLATFORM=linux/$("${own[@]}" info --format '{{.host.arch}}')")
    # One after the other: with all platforms at once the order in the list is random. With --layers the bundle is built only once.
    for platform in "${platforms[@]}"; do
      "${own[@]}" build "${arguments[@]}" --layers --platform "$platform" --timestamp "$SOURCE_DATE_EPOCH" --manifest all "$context" >&2
    done
    "${own[@]}" manifest inspect all | has_all
    [[ $destination =~ ^docker://(127\.[0-9.]+|localhost)(:|/) ]] && plain=(--tls-verify=false) || plain=()
    # buildah 1.28 exits with 0 and without a message if the push failed. Only a missing digest shows it.
    "${own[@]}" manifest push --all "${plain[@]}" --digestfile "$work/digest" all "$destination" >&2
    digest=$(cat "$work/digest" 2> /dev/null || true)
    ;;
  buildx)
    case $destination in
      oci:*) output=type=oci,tar=false,dest=${destination#oci:},rewrite-timestamp=true ;;
      *) output=type=image,name=${destination#docker://},push=true,oci-mediatypes=true,rewrite-timestamp=true ;;
    esac
    # Attestations contain the time of the build, so they would change the digest.
    docker buildx build "${arguments[@]}" --platform "$(IFS=,; echo "${platforms[*]}")" --provenance=false --sbom=false --metadata-file "$work/metadata.json" \
      --output "$output" "$context" >&2
    digest=$(grep -oE '"containerimage.digest": *"sha256:[0-9a-f]{64}"' "$work/metadata.json" | grep -oE 'sha256:[0-9a-f]{64}')
    case $destination in
      oci:*) has_all < "${destination#oci:}/blobs/sha256/${digest#sha256:}" ;;
      *) docker buildx imagetools inspect --raw "${destination#docker://}@$digest" | has_all ;;
    esac
    ;;
esac
[ -n "$digest" ] || fail 1 "${destination#docker://} could not be written"
echo "$digest"
