#!/usr/bin/env bash
# Lints .github: actionlint (with shellcheck for the scripts in workflows) and zizmor, which looks for ways to attack a workflow.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: hack/lint-workflows.sh

Builds actionlint from its Go module (hack/lint/tools), installs zizmor and shellcheck from PyPI (hack/lint/requirements.txt), and
runs them over .github without asking GitHub. Needs Go 1.26 and Python 3 with pip. A check whose program cannot be had is skipped,
with the reason on stderr; where CI is set, it fails.

  ARCHAWARE_LINT   the folder of the programs (default: ~/.cache/archaware/lint)

The last line on stdout is "workflows: N passed, N failed, N skipped". Exit codes: 0 done, 1 failed, 3 usage.
TEXT
}

case ${1:-} in -h | --help) usage && exit 0 ;; esac
if [[ $# -gt 0 ]]; then
  usage >&2
  exit 3
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${ARCHAWARE_LINT:-$HOME/.cache/archaware/lint}
mkdir -p "$bin"
passed=0 failed=0 skipped=0

say() { echo "lint-workflows.sh: $*" >&2; }
hash() { if command -v sha256sum > /dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }

# install NAME STAMPED COMMAND...: runs the command, which fills $bin/NAME, unless the stamp shows that it did so for the same inputs.
install() {
  local name=$1 stamped=$2 log
  shift 2
  if [[ -f $bin/$name.stamp && $(< "$bin/$name.stamp") == "$stamped" ]]; then return 0; fi
  rm -rf "${bin:?}/$name" "$bin/$name.stamp"
  log=$("$@" 2>&1) || { say "$name: $(tail -n 2 <<< "$log")"; return 1; }
  echo "$stamped" > "$bin/$name.stamp"
}

actionlint() {
  command -v go > /dev/null || { echo 'Go is not on the PATH'; return 1; }
  GOBIN=$bin/actionlint CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off go -C hack/lint/tools install -trimpath github.com/rhysd/actionlint/cmd/actionlint
}

wheels() {
  command -v python3 > /dev/null || { echo 'Python 3 is not on the PATH'; return 1; }
  # A folder of its own instead of a virtual environment: Debian has the module venv in another package than pip.
  python3 -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --only-binary :all: --no-deps \
    --target "$bin/wheels" --requirement hack/lint/requirements.txt
}

# check TITLE COMMAND...
check() {
  local title=$1
  shift
  if "$@"; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    say "$title found something"
  fi
}

# lacking TITLE: counts a check whose program is not there.
lacking() {
  if [[ -n ${CI:-} ]]; then failed=$((failed + 1)) && say "$1 could not be installed, which fails where CI is set"; else
    skipped=$((skipped + 1)) && say "$1 could not be installed, so its check is skipped"
  fi
}

wheels_are_there=
if install wheels "$(cat hack/lint/requirements.txt | hash)" wheels; then wheels_are_there=yes; fi
shellcheck=$bin/wheels/bin/shellcheck
[[ -x $shellcheck ]] || shellcheck=$(command -v shellcheck || true)

if [[ -n $shellcheck ]]; then
  if install actionlint "$(cat hack/lint/tools/go.{mod,sum} | hash)" actionlint; then
    check actionlint "$bin/actionlint/actionlint" -color -shellcheck "$shellcheck" -pyflakes ''
  else
    lacking actionlint
  fi
else
  lacking 'shellcheck, which actionlint needs,'
fi
if [[ -n $wheels_are_there ]]; then
  # Of the personas that zizmor has, pedantic reports more than the regular one.
  check zizmor "$bin/wheels/bin/zizmor" --quiet --offline --pedantic --strict-collection .
else
  lacking zizmor
fi
echo "workflows: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
