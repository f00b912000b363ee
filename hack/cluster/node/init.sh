#!/usr/bin/env bash
# PID 1 of the real node: init.sh DIRECTORY BINARIES NAME ADDRESS. Makes its namespaces a machine of their own, says so ("ready
# PID", the PID as the outside sees it), and ends when its standard input does; everything in its namespaces ends with it.
#   DIRECTORY  the node's disk
#   BINARIES   of build.sh; what build-node.sh makes lies below
set -euo pipefail
directory=$1 binaries=$2 name=$3 address=$4
packages=$binaries/node/packages root=$directory/root
# The outside's /proc is still here.
read -r outside _ < /proc/self/stat
hierarchies=$(awk '$(NF-2) == "cgroup" {print $5, $NF}' /proc/self/mountinfo)

# This machine's files, the packages on top, and on top of both what is written here. Two mounts, as one does not take a layer
# that lies within another.
mkdir -p "$directory"/{packages,root,written/upper,written/work}
mount -t overlay overlay -o "ro,lowerdir=/,upperdir=$packages/upper,workdir=$packages/work" "$directory/packages"
mount -t overlay overlay -o "lowerdir=$directory/packages,upperdir=$directory/written/upper,workdir=$directory/written/work" "$root"

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
while read -r path options; do
  controllers=${path##*/}
  mkdir "$root/sys/fs/cgroup/$controllers"
  if [[ $options =~ name=([^,]+) ]]; then options=none,name=${BASH_REMATCH[1]}; else options=$controllers; fi
  mount -t cgroup -o "$options" cgroup "$root/sys/fs/cgroup/$controllers"
  if [[ $controllers == *,* ]]; then for one in ${controllers//,/ }; do ln -s "$controllers" "$root/sys/fs/cgroup/$one"; done; fi
done <<< "$hierarchies"
for shared in "$directory" "$binaries"; do
  mkdir -p "$root$shared"
  mount --bind "$shared" "$root$shared"
done
# On the disk itself: containerd makes overlays there, which cannot lie on those of above.
for path in lib/containerd lib/kubelet lib/cni log/pods log/containers; do
  mkdir -p "$directory/data/$path" "$root/var/$path"
  mount --bind "$directory/data/$path" "$root/var/$path"
done
cd "$root"
pivot_root . mnt
cd /
umount --lazy /mnt
# The kubelet wants to share what it mounts with containers.
mount --make-rshared /

# The kubelet sets these for the whole machine. It finds files that have its values already.
mkdir /run/sysctl
instead() { # SYSCTL VALUE
  [[ -e /proc/sys/$1 ]] || return 0
  echo "$2" > "/run/sysctl/${1//\//.}"
  mount --bind "/run/sysctl/${1//\//.}" "/proc/sys/$1"
}
instead vm/overcommit_memory 1
instead vm/panic_on_oom 0
instead kernel/panic 10
instead kernel/panic_on_oops 1
instead kernel/keys/root_maxkeys 1000000
instead kernel/keys/root_maxbytes 25000000

# A network card with nothing behind it: both ends of the pair are here. The default route is what a ClusterIP, which no
# interface has, is sent along until kube-proxy's rules change where it goes.
hostname "$name"
ip link set lo up
ip link add up0 type veth peer name up1
ip address add "$address/24" dev up0
ip link set up0 up
ip link set up1 up
ip route add default via "${address%.*}.254" dev up0
echo 1 > /proc/sys/net/ipv4/ip_forward
if [[ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]]; then echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables; fi
printf '127.0.0.1 localhost\n%s %s registry.test\n' "$address" "$name" > /etc/hosts
# Nobody answers names on the node itself; a name server of the outside would be waited for.
rm -f /etc/resolv.conf
echo 'nameserver 127.0.0.1' > /etc/resolv.conf

echo "ready $outside"
while read -r _; do :; done
