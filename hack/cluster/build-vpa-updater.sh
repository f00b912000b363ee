#!/usr/bin/env bash
# Builds the updater of the Vertical Pod Autoscaler and the kinds of its objects into the folder of build.sh. Only
# `npm run test:neighbours` needs them, so build.sh does not build them.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one vpa-updater k8s.io/autoscaler/vertical-pod-autoscaler/pkg/updater k8s.io/autoscaler/vertical-pod-autoscaler deploy
