#!/usr/bin/env bash
# Builds Kueue (tools/kueue), with the kinds of its objects and the configurations of its webhooks, into the folder of build.sh. Only `npm run test:neighbours`
# needs it, so build.sh does not build it. From nothing it takes about six minutes of CPU time.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one kueue sigs.k8s.io/kueue/cmd/kueue sigs.k8s.io/kueue config/components/crd/bases config/components/webhook
