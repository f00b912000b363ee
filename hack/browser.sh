#!/usr/bin/env bash
# Installs Debian's Chromium for `npm run test:browser`, if it is not there. Needs root and a Debian or Ubuntu.
#
#   CHROMIUM   another browser of this kind (default: /usr/bin/chromium)
set -euo pipefail
chromium=${CHROMIUM:-/usr/bin/chromium}
[[ -x $chromium ]] && exit 0
if [[ -n ${CHROMIUM:-} || $EUID != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "browser: $chromium is not there; install Chromium, or name one with CHROMIUM" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
