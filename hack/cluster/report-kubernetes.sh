#!/usr/bin/env bash
# Opens an issue that says how a try of another version of Kubernetes ended, or comments on the open one of the same title. If that
# issue was closed, nothing is written: somebody has decided. .github/workflows/kubernetes.yml runs it, with GH_TOKEN and GH_REPO.
#
#   hack/cluster/report-kubernetes.sh VERSION RESULT URL    RESULT: success or failure; URL: of the run
#
# Exit codes: 0 done; 1 failed; 3 usage
set -euo pipefail

if [[ $# -ne 3 || ! $1 =~ ^1\.[0-9]+(\.[0-9]+(-[a-z]+\.[0-9]+)?)?$ || ! $2 =~ ^(success|failure)$ || ! $3 =~ ^https:// ]]; then
  sed -n 's/^#   //p' "${BASH_SOURCE[0]}" >&2
  exit 3
fi
version=$1 result=$2 url=$3
title="Kubernetes $version"

if [[ $result == success ]]; then
  text="The tests pass on Kubernetes $version: $url

To move to it: \`hack/cluster/move-kubernetes.sh $version\`, or apply the patch that the run keeps. What the run leaves out: the real
node (\`npm run test:node\`) and the image (\`test/e2e/image.e2e.ts\`)."
else
  text="A step failed on Kubernetes $version: $url

To see it on your machine: \`hack/cluster/try-kubernetes.sh $version\` in a clean checkout."
fi

# The search finds titles with these words; only the exact title counts.
found=$(gh issue list --state all --search "in:title \"$title\"" --limit 100 --json number,title,state \
  --jq ".[] | select(.title == \"$title\") | \"\\(.state) \\(.number)\"" | head -n 1)
case $found in
  '') gh issue create --title "$title" --body "$text" ;;
  'OPEN '*) gh issue comment "${found#OPEN }" --body "$text" ;;
  *) echo "report-kubernetes.sh: issue ${found##* } is closed; nothing to write" ;;
esac
