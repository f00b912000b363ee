#!/usr/bin/env bash
# Builds what `npm run test:neighbours` runs beside archaware into the folder of build.sh: Helm 3, Argo CD's comparison and sync
# (tools/argocd), and Flux's server-side apply (tools/flux); cert-manager has a build of its own (build-cert-manager.sh). From nothing it
# takes about five minutes of CPU time, and no time when up to date.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one helm3 helm.sh/helm/v3/cmd/helm
build_one argocd .
build_one flux .
