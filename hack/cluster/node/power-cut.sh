#!/usr/bin/env bash
# In the node's namespaces, with kubelet, containerd and kube-proxy dead: does what a power cut does to the rest of a node. No container
# runs, /run is empty, the mounts and links of pods are gone, and so are their cgroups; the disk stays.
set -euo pipefail

# Processes whose names begin with containerd-shim, and processes in the cgroups of pods.
shims() {
  local directory
  for directory in /proc/[0-9]*; do
    if [[ $(cat "$directory/comm" 2> /dev/null) == containerd-shim* ]]; then echo "${directory#/proc/}"; fi
  done
}
of_pods() { find /sys/fs/cgroup/pids/kubepods -name cgroup.procs -exec cat {} + 2> /dev/null || true; }

for _ in $(seq 100); do
  left=$(shims; of_pods)
  [[ -n $left ]] || break
  # shellcheck disable=SC2086
  kill -KILL $left 2> /dev/null || true
  sleep 0.05
done
[[ -z $left ]] || { echo "still running: $left" >&2; exit 1; }

awk '$5 ~ "^/(run/(containerd|netns)|var/lib/(kubelet|containerd))/" {print $5}' /proc/self/mountinfo | sort -r | while read -r mount; do umount --lazy "$mount"; done
rm -rf /run/containerd /run/netns /run/cni
for link in /sys/class/net/{veth,cni}*; do
  if [[ -e $link ]]; then ip link delete "${link##*/}" 2> /dev/null || true; fi
done
nft flush ruleset
for root in /sys/fs/cgroup/*/kubepods; do find "$root" -depth -type d -exec rmdir {} +; done
