#!/usr/bin/env bash
# Publishes the files that hack/release.sh has written, as the GitHub release of the tag.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: hack/publish-release.sh VERSION

Takes every file that dist/release/VERSION/SHA256SUMS names, checks it, and publishes it with SHA256SUMS and its signature as the
GitHub release of the tag vVERSION, with the text of release-notes.md. The release is a draft until all files are there. A second run goes
on with the draft; if the release was published with other files, nothing is changed. VERSION may begin with a v.

  GH_TOKEN, GH_REPO   as gh reads them: a token that may write the contents of the repository OWNER/NAME

Exit codes: 0 done, 1 failed, 3 usage.
TEXT
}

fail() { # CODE MESSAGE
  echo "publish-release.sh: $2" >&2
  exit "$1"
}

case "${1:-}" in -h | --help) usage && exit 0 ;; esac
if [[ $# -ne 1 ]]; then
  usage >&2
  exit 3
fi
version=${1#v}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail 3 "\"$1\" is not a version: 0.2.0"
tag=v$version
command -v gh > /dev/null || fail 1 'gh was not found: https://cli.github.com'
cd "$(dirname "${BASH_SOURCE[0]}")/../dist/release/$version" 2> /dev/null || fail 1 "there is no dist/release/$version: run hack/release.sh $version"

for file in SHA256SUMS SHA256SUMS.sigstore.json release-notes.md; do
  [[ -f $file ]] || fail 1 "there is no dist/release/$version/$file"
done
sha256sum --check --strict --quiet SHA256SUMS || fail 1 "files in dist/release/$version differ from SHA256SUMS"
mapfile -t files < <(cut -c 67- SHA256SUMS)
files+=(SHA256SUMS SHA256SUMS.sigstore.json)

# What was signed with a key is verified with cosign.pub, which stands beside SHA256SUMS.
if [[ -f cosign.pub ]]; then files+=(cosign.pub); fi

# Any other failure must not look like "none": what is published would be overwritten then.
if ! state=$(gh release view "$tag" --json isDraft --jq .isDraft 2>&1); then
  [[ $state == *'release not found'* ]] || fail 1 "gh could not read the release $tag: $state"
  state=none
fi
# A draft of an earlier run, or of a person, may have another text.
flags=(--title "$version" --notes-file release-notes.md)
if [[ $version == *-* ]]; then flags+=(--prerelease); fi
case $state in
  none) gh release create "$tag" --draft --verify-tag "${flags[@]}" > /dev/null ;;
  true) ;;
  false)
    published=$(gh release download "$tag" --pattern SHA256SUMS --output -)
    [[ $published == "$(< SHA256SUMS)" ]] || fail 1 "$tag is published already, with other files; nothing was changed"
    echo "publish-release.sh: $tag is published already, with these files"
    exit 0
    ;;
  *) fail 1 "gh says about $tag: $state" ;;
esac
gh release upload "$tag" --clobber "${files[@]}"
# GitHub takes what is published last for the latest release, even if it is a patch of an older version.
newest=$({ gh release list --exclude-drafts --exclude-pre-releases --limit 100 --json tagName --jq '.[].tagName' && echo "$tag"; } | sort --version-sort | tail -n 1)
if [[ $newest != "$tag" ]]; then flags+=(--latest=false); fi
gh release edit "$tag" --draft=false --verify-tag "${flags[@]}" > /dev/null
echo "publish-release.sh: $tag is published, ${#files[@]} files"
