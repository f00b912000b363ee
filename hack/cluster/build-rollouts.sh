#!/usr/bin/env bash
# Builds the controller of Argo Rollouts and the kinds of its objects into the folder of build.sh. Only `npm run test:neighbours` needs
# them, so build.sh does not build them.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one rollouts github.com/argoproj/argo-rollouts/cmd/rollouts-controller github.com/argoproj/argo-rollouts manifests/crds
