#!/usr/bin/env bash
# Builds the image fixtures and pushes them to Docker Hub and Quay. No container engine is needed.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: testimg/update.sh DOCKER_NS QUAY_NS [authfile]

Builds every image fixture (tiny, from nothing) and pushes it to archaware-testimg in the namespace
DOCKER_NS of Docker Hub and QUAY_NS of Quay, a tag for each. Can be run again at any time.

  authfile          credentials in the form of Docker's config.json;
                    default: ~/.docker/config.json, if there is one
  DOCKER_REGISTRY   host[:port] to use instead of docker.io (loopback hosts: plain http)
  QUAY_REGISTRY     host[:port] to use in place of quay.io

Exit codes: 0 done, 1 failed, 3 usage.
TEXT
}

fail() { # CODE MESSAGE
  echo "update.sh: $2" >&2
  exit "$1"
}

case "${1:-}" in -h | --help) usage && exit 0 ;; esac
if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  usage >&2
  exit 3
fi
for namespace in "$1" "$2"; do
  [[ $namespace =~ ^[a-z0-9]+([._-]+[a-z0-9]+)*$ ]] || fail 3 "\"$namespace\" is not a valid namespace: lower case letters, digits, . _ -"
done
arguments=("$1" "$2")
if [ $# -eq 3 ]; then
  [ -r "$3" ] || fail 3 "authfile \"$3\" cannot be read"
  # Not realpath, which older versions of macOS lack.
  arguments+=("$(cd "$(dirname "$3")" && pwd)/$(basename "$3")")
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -x node_modules/.bin/tsx ] || fail 1 "node_modules is missing: run \"npm ci\" in $PWD first"
exec node_modules/.bin/tsx testimg/main.ts "${arguments[@]}"
