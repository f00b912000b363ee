#!/usr/bin/env bash
# enter.sh TREE PID COMMAND...: runs a command in the cgroups and namespaces of the node whose PID 1 is PID. The command dies
# with this process, so killing this process kills the command, too.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cgroups.sh"
tree=$1 pid=$2
shift 2
join_tree "$tree"
exec nsenter --target "$pid" --mount --net --pid --uts --ipc --cgroup -- setpriv --pdeathsig KILL "$@"
