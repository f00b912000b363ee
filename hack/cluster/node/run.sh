#!/usr/bin/env bash
# run.sh COMMAND...: runs a command as PID 1 of namespaces of its own, in a sub-tree of every cgroup hierarchy that is named
# after this process, and removes the sub-tree afterwards. The command must end when its standard input ends, which happens when the process
# that started this script ends for any reason.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/cgroups.sh"
name=$prefix.$$

remove_trees_of_the_dead
make_tree "$name"
# When the parent dies, unshare dies, then PID 1, and then everything in its namespaces.
(
  join_tree "$name"
  exec setpriv --pdeathsig KILL unshare --mount --net --pid --uts --ipc --cgroup --fork --kill-child --propagation private "$@"
) <&0 &
child=$!
trap 'kill -KILL $child 2> /dev/null || true' TERM
trap '' INT HUP
status=0
wait "$child" || status=$?
exec 0< /dev/null
remove_tree "$name"
exit "$status"
