#!/usr/bin/env bash
# The step of action.yml that checks. Its inputs are environment variables, named as there; it runs in the checkout of the user's repository.
# Exit codes are those of `check`: 0; 2 where something is missing, dropped or unknown; 3 for what cannot be checked.
set -euo pipefail

work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/archaware.XXXXXX")
trap 'git worktree remove --force "$work/before" 2> /dev/null || true' EXIT
wrong() { echo "::error::$1"; exit 3; }

[[ -n ${MANIFESTS:-}${RENDER:-} ]] || wrong 'archaware check: set manifests (a file or directory) or render (a command that prints manifests)'
[[ -z ${MANIFESTS:-} || -z ${RENDER:-} ]] || wrong 'archaware check: set manifests or render, not both'

# manifests DIRECTORY NAME: prints the path of the manifests of a checkout.
manifests() {
  if [[ -z ${RENDER:-} ]]; then echo "$1/$MANIFESTS"; return; fi
  (cd "$1" && bash -euo pipefail -c "$RENDER") > "$work/$2.yaml"
  echo "$work/$2.yaml"
}

after=$(manifests . after)
options=(-f "$after" -o markdown)
[[ -z ${ARCHITECTURES:-} ]] || options+=(--on "$ARCHITECTURES")
[[ -z ${CONFIGURATION:-} ]] || options+=(--config "$CONFIGURATION")

if [[ ${BASE:-none} != none ]]; then
  # The branch as it is at the origin goes first: a branch of the same name may lie here. actions/checkout
  # fetches one commit by default.
  depth=()
  if [[ $(git rev-parse --is-shallow-repository) == true ]]; then depth=(--depth=1); fi
  commit=$({ git fetch --quiet "${depth[@]}" origin "$BASE" 2> /dev/null && git rev-parse FETCH_HEAD; } || git rev-parse --verify --quiet "$BASE^{commit}") ||
    wrong "archaware check: base: $BASE is no branch or commit of this repository"
  git worktree add --quiet --detach "$work/before" "$commit"
  # What the base does not have was added, and has nothing to be compared with.
  if [[ -n ${RENDER:-} || -e $work/before/$MANIFESTS ]]; then options+=(--compare "$(manifests "$work/before" before)"); fi
fi

code=0
node "${GITHUB_ACTION_PATH:-$(dirname "${BASH_SOURCE[0]}")/..}/dist/main.js" check "${options[@]}" > "$work/summary.md" || code=$?
tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}" < "$work/summary.md"
echo "summary=$work/summary.md" >> "${GITHUB_OUTPUT:-/dev/null}"
exit "$code"
