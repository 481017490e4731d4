# shellcheck shell=bash
# Control groups: everything that belongs to a cluster runs below $CGROUP, so that `down` finds it all.
# Both layouts are known: one hierarchy a controller (v1) and the single one (v2).

CGROUP_ROOT=/sys/fs/cgroup

cgroup_is_v2() { [ -f $CGROUP_ROOT/cgroup.controllers ]; }

# The hierarchies in which groups are made.
cgroup_hierarchies() {
  if cgroup_is_v2; then
    echo $CGROUP_ROOT
    return
  fi
  local dir
  for dir in "$CGROUP_ROOT"/*/; do
    dir=${dir%/}
    # Links such as cpu -> cpu,cpuacct name the same hierarchy; the v2 side tree is not ours to use.
    [ -f "$dir/cgroup.procs" ] && [ ! -f "$dir/cgroup.controllers" ] && [ ! -L "$dir" ] && echo "$dir"
  done
}

# The one hierarchy by which processes are found again.
cgroup_tracking() {
  if cgroup_is_v2; then echo $CGROUP_ROOT; else echo $CGROUP_ROOT/pids; fi
}

cgroup_create() { # GROUP
  local dir file
  for dir in $(cgroup_hierarchies); do
    mkdir -p "$dir/$1"
    # A new cpuset is empty and takes no process until it names processors and memory.
    for file in cpuset.cpus cpuset.mems; do
      if [ -f "$dir/$file" ] && ! cgroup_is_v2; then cpuset_fill "$dir" "$1" $file; fi
    done
  done
  ! cgroup_is_v2 || controllers_pass "$1"
}

# v2: the kubelet wants every controller in its root group, so each group above must pass them on.
controllers_pass() { # GROUP
  local path=$CGROUP_ROOT part controller
  for part in ${1//\// }; do
    for controller in cpu cpuset memory pids io; do
      echo "+$controller" >"$path/cgroup.subtree_control" 2>/dev/null ||
        grep -qw $controller "$path/cgroup.subtree_control" ||
        say "warning: cannot pass the $controller controller below $path"
    done
    path+=/$part
  done
}

cpuset_fill() { # HIERARCHY GROUP FILE
  local path=$1 part
  for part in ${2//\// }; do
    [ -n "$(cat "$path/$part/$3")" ] || cat "$path/$3" >"$path/$part/$3"
    path+=/$part
  done
}

# Moves the calling (sub)shell.
cgroup_join() { echo "$BASHPID" >"$(cgroup_tracking)/$1/cgroup.procs"; }

cgroup_processes() { # GROUP -> every pid in it and below
  local dir
  dir=$(cgroup_tracking)/$1
  [ -d "$dir" ] || return 0
  find "$dir" -name cgroup.procs -exec cat {} + 2>/dev/null || true
}

cgroup_kill() { # GROUP
  local pids tries=0
  while true; do
    mapfile -t pids < <(cgroup_processes "$1")
    [ ${#pids[@]} -gt 0 ] || return 0
    kill -KILL "${pids[@]}" 2>/dev/null || true
    tries=$((tries + 1))
    [ $tries -le 200 ] || die "${#pids[@]} processes in control group $1 cannot be killed: ${pids[*]}"
    sleep 0.05
  done
}

cgroup_remove() { # GROUP
  local dir tries
  # Under v1 runc leaves empty groups in the v2 side tree, too.
  for dir in $(cgroup_hierarchies) "$CGROUP_ROOT/unified"; do
    for tries in 1 2 3 4 5; do
      [ -d "$dir/$1" ] || break
      find "$dir/$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
    [ ! -d "$dir/$1" ] || say "warning: control group $dir/$1 is still in use (try $tries)"
  done
}
