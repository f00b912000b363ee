#!/usr/bin/env bash
# Builds Karpenter with its kwok provider, and the kinds of its objects, into the folder of build.sh. Only the tests of the
# autoscalers need them, so build.sh does not build them: it takes about three minutes of CPU time from nothing, and no time
# when up to date.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
# The package is named kwok, like the program that simulates the kubelets.
build_one karpenter sigs.k8s.io/karpenter/kwok sigs.k8s.io/karpenter {pkg,kwok}/apis/crds
