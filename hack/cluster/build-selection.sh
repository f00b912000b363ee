#!/usr/bin/env bash
# Builds the program that says what containerd and CRI-O take of an index, from their own packages, into the folder of build.sh.
# test/e2e/selection.e2e.ts runs this script itself.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one selection .
