#!/usr/bin/env bash
# Makes and publishes a release; hack/release/main.ts does it.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: hack/release.sh VERSION [--no-push]

Releases the commit that has the tag vVERSION: checks it, builds everything from a clean clone of it, pushes image and chart, signs
them, and tags them last. The files are in dist/release/VERSION; the last line on stdout is the one that installs the release.

With the same commit a second run finds what is there and completes it. A version that exists with another digest is refused
before anything is pushed.

  --no-push           builds everything and prints the digests, but pushes and signs nothing

  REGISTRY            host[:port] of the registry; in GitHub Actions ghcr.io (loopback hosts may speak plain http)
  REPOSITORY          the path below it; in GitHub Actions the owner of the repository
  SOURCE              https URL of the repository; default: that of GitHub Actions, or of the remote origin
  BASE_IMAGE          replaces the image with Node.js that the Dockerfile names; by digest, and for all four platforms
  COSIGN_KEY          a private key of cosign (with COSIGN_PASSWORD) signs, without the transparency log; without it the identity
                      of the GitHub Actions workflow signs
  SSL_CERT_FILE       the authorities that sign the certificate of the registry, if the system does not know them

Before: hack/release/build-tools.sh; docker login (or crane auth login). docs/development/releasing.md has the steps.

Exit codes: 0 done, 1 failed, 3 usage.
TEXT
}

case "${1:-}" in
  -h | --help) usage && exit 0 ;;
  '') usage >&2 && exit 3 ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The same order of names in every language, and the repository of this folder even where a hook of git names another.
export LC_ALL=C
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
command -v npm > /dev/null || { echo 'release.sh: npm was not found: install Node.js' >&2; exit 1; }
cd "$root"
# A fresh clone has none; the release itself is built in a clone of its own.
if [ ! -d node_modules ]; then npm ci --include=dev --ignore-scripts --no-audit --no-fund >&2; fi
# Loaded by node itself, so that a signal reaches main.ts.
exec node --import tsx hack/release/main.ts "$@"
