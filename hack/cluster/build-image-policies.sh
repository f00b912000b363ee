#!/usr/bin/env bash
# Builds what tries the policies of docs/examples into the folder of build.sh: Kyverno and Sigstore's policy-controller with the kinds of
# their objects, tools/keyless, which signs images, and cosign (hack/release/build-tools.sh). Only `npm run test:neighbours` needs them,
# so build.sh does not build them. From nothing it takes about eight minutes of CPU time, and 400 MB.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one kyverno github.com/kyverno/kyverno/cmd/kyverno github.com/kyverno/kyverno \
  config/crds/kyverno config/crds/policies.kyverno.io config/crds/policyreport config/crds/reports
build_one policy-controller github.com/sigstore/policy-controller/cmd/webhook github.com/sigstore/policy-controller config
build_one keyless .
"$(dirname "${BASH_SOURCE[0]}")/../release/build-tools.sh"
