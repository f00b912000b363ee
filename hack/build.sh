#!/usr/bin/env bash
# Builds the image of the last commit for every platform, and pushes it.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: hack/build.sh NAMESPACE TAG

Builds the last commit (uncommitted changes are not in the image) for linux/amd64, arm64, ppc64le and s390x with buildah or docker
buildx, and pushes it as archaware-controller:TAG in the namespace NAMESPACE of Docker Hub. Prints its name with the digest,
and on stderr the commands that install it, with kubectl or with helm; the packages in it stand in
dist/archaware-controller-TAG.spdx.json (npm sbom).

The same commit gives the same digest, whatever the tag, as long as the builder is the same one: buildah and buildx compress
differently. docker buildx needs a builder for several platforms: docker buildx create --use. Nothing is emulated.

  BASE_IMAGE        replaces the image with Node.js that the Dockerfile names; by digest, and for all four platforms
  DOCKER_REGISTRY   host[:port] to use instead of docker.io (loopback hosts: plain http)

Exit codes: 0 done, 1 failed, 3 usage.
TEXT
}

fail() { # CODE MESSAGE
  echo "build.sh: $2" >&2
  exit "$1"
}

case "${1:-}" in -h | --help) usage && exit 0 ;; esac
if [ $# -ne 2 ]; then
  usage >&2
  exit 3
fi
namespace=$1
tag=$2
[[ $namespace =~ ^[a-z0-9]+([._-]+[a-z0-9]+)*$ ]] || fail 3 "\"$namespace\" is not a valid namespace: lower case letters, digits, . _ -"
[[ $tag =~ ^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$ ]] || fail 3 "\"$tag\" is not a valid tag: letters, digits, _ . -, 128 at most"
if [ -n "${BASE_IMAGE:-}" ]; then
  [[ $BASE_IMAGE =~ @sha256:[0-9a-f]{64}$ ]] || fail 3 "BASE_IMAGE \"$BASE_IMAGE\" has no digest: NAME@sha256:…"
fi

command -v npm > /dev/null || fail 1 'npm was not found: it writes the list of packages'

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -z "$(git status --porcelain --untracked-files=no)" ] || echo 'build.sh: uncommitted changes are not in the image' >&2
image=${DOCKER_REGISTRY:-docker.io}/$namespace/archaware-controller:$tag
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/context"
git archive HEAD | tar -x -C "$work/context"

# With log.showSignature git would print what it thinks of the signature, too.
SOURCE_DATE_EPOCH=$(git log -1 --no-show-signature --format=%ct)
export SOURCE_DATE_EPOCH
arguments=(
  --label "org.opencontainers.image.version=$(cd "$work/context" && npm pkg get version | tr -d '"')"
  --label "org.opencontainers.image.revision=$(git rev-parse HEAD)"
  --label "org.opencontainers.image.created=$(TZ=UTC git log -1 --no-show-signature --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)"
)
if [ -n "${BASE_IMAGE:-}" ]; then arguments+=(--build-arg "BASE_IMAGE=$BASE_IMAGE"); fi

digest=$(hack/image/build.sh "$work/context" "docker://$image" "${arguments[@]}")

mkdir -p dist
# Development dependencies are removed first, because npm sbom --omit=dev also drops packages that both kinds need.
(
  cd "$work/context"
  npm pkg delete devDependencies
  npm install --package-lock-only --offline --ignore-scripts
) >&2
(cd "$work/context" && npm sbom --package-lock-only --sbom-format=spdx) > "$work/sbom.json"
mv "$work/sbom.json" "dist/archaware-controller-$tag.spdx.json"
echo "$image@$digest"
cat >&2 <<TEXT
Install it with kubectl (before Kubernetes 1.36: manifests/archaware-controller-1.30.yaml), or with helm:
  sed 's|registry.invalid/archaware-controller:[^ ]*|$image@$digest|' manifests/archaware-controller.yaml > archaware.yaml && kubectl apply -f archaware.yaml
  helm upgrade --install archaware manifests/helm/archaware-controller --namespace archaware --create-namespace --set image.repository=${image%:*} --set image.digest=$digest
TEXT
