# Functions for a sub-tree in every cgroup v1 hierarchy of this machine. A sub-tree's name ends with the id of the process
# that removes it.
prefix=archaware-node

# The mount points: /sys/fs/cgroup/memory and so on.
hierarchies() { awk '$(NF-2) == "cgroup" {print $5}' /proc/self/mountinfo; }

make_tree() { # NAME
  local root
  for root in $(hierarchies); do
    mkdir "$root/$1"
    # A new cpuset has no CPU and accepts no process until it gets one.
    if [[ -e $root/cpuset.cpus ]]; then
      cat "$root/cpuset.cpus" > "$root/$1/cpuset.cpus"
      cat "$root/cpuset.mems" > "$root/$1/cpuset.mems"
    fi
  done
}

join_tree() { # NAME: the calling process
  local root
  for root in $(hierarchies); do echo "$BASHPID" > "$root/$1/cgroup.procs"; done
}

# A group can be removed once its last process is gone, which takes a moment after it was killed.
remove_tree() { # NAME
  local root attempt
  for root in $(hierarchies); do
    for attempt in $(seq 100); do
      [[ ! -d $root/$1 ]] || find "$root/$1" -depth -type d -exec rmdir {} + 2> /dev/null || true
      [[ -d $root/$1 ]] || continue 2
      sleep 0.05
    done
    echo "$root/$1 still has processes: $(find "$root/$1" -name cgroup.procs -exec cat {} + | tr '\n' ' ')" >&2
  done
}

# Removes sub-trees whose process was killed. A zombie has no command line, and another process with the same id has a different
# one.
remove_trees_of_the_dead() {
  local root tree
  for root in $(hierarchies); do
    for tree in "$root/$prefix".*; do
      if [[ -d $tree ]] && ! grep -qs /run.sh "/proc/${tree##*.}/cmdline"; then remove_tree "${tree##*/}"; fi
    done
  done
}
