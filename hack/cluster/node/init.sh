#!/usr/bin/env bash
# PID 1 of the real node: init.sh DIRECTORY BINARIES NAME ADDRESS. Sets up its namespaces like a machine of their own, prints "ready
# PID" (the PID outside of the namespaces), and ends when its standard input ends, with everything in its namespaces.
#   DIRECTORY  the node's disk
#   BINARIES   the folder of build.sh, which contains that of build-node.sh
set -euo pipefail
directory=$1 binaries=$2 name=$3 address=$4
packages=$binaries/node/packages root=$directory/root
# This is still the /proc of the host.
read -r outside _ < /proc/self/stat
hierarchies=$(awk '$(NF-2) == "cgroup" {print $5, $NF}' /proc/self/mountinfo)

# Layers: the files of the host, then the packages, then what is written here. Two mounts, because a layer of an overlay cannot
# lie within another one.
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
# On the disk itself, because containerd creates overlays there, which cannot lie on the overlays above.
for path in lib/containerd lib/kubelet lib/cni log/pods log/containers; do
  mkdir -p "$directory/data/$path" "$root/var/$path"
  mount --bind "$directory/data/$path" "$root/var/$path"
done
cd "$root"
pivot_root . mnt
cd /
umount --lazy /mnt
# The kubelet shares its mounts with containers.
mount --make-rshared /

# The kubelet sets these for the whole machine. Here it finds files that already have its values.
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

# A network card that is connected to nothing: both ends of the pair are here. No interface has a ClusterIP, so packets to one need
# a default route until the rules of kube-proxy change their destination.
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
# The node has no name server. With the name server of the host, lookups would wait for a timeout.
rm -f /etc/resolv.conf
echo 'nameserver 127.0.0.1' > /etc/resolv.conf

echo "ready $outside"
while read -r _; do :; done
