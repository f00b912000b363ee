#!/usr/bin/env bash
# Builds Istio's sidecar injector (tools/istio) and puts the chart that configures it beside it, into the folder of build.sh. Only
# `npm run test:neighbours` needs them, so build.sh does not build them.
#
#   ARCHAWARE_BIN   the folder (default: ~/.cache/archaware/bin)
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/build-one.sh"
build_one istio . istio.io/istio
cd "$(dirname "${BASH_SOURCE[0]}")/tools/istio"
bin=${ARCHAWARE_BIN:-$HOME/.cache/archaware/bin}
chart=$(go list -m -f '{{.Dir}}' istio.io/istio)/manifests/charts/istio-control/istio-discovery
rm -rf "$bin/istio-chart"
cp -r "$chart" "$bin/istio-chart"
chmod -R u+w "$bin/istio-chart"
