#!/usr/bin/env bash
# Builds cert-manager's controllers (tools/cert-manager) and the kinds of its objects into the folder of build.sh. Only
# `npm run test:neighbours` needs them, so build.sh does not build them.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one cert-manager . github.com/cert-manager/cert-manager deploy/crds
