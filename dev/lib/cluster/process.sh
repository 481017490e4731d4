# shellcheck shell=bash
# The cluster's processes: each is recorded as "pid start-time command-hash" in run/NAME.pid, so that
# a pid that the kernel has given to somebody else is never taken for ours.

# The time (in clock ticks since boot) at which process PID started; nothing when there is none.
start_time() {
  local stat
  { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
  stat=${stat##*) } # the name before it may hold blanks
  # shellcheck disable=SC2086  # the fields are words
  set -- $stat
  [ "$1" = Z ] || printf '%s' "${20}"
}

proc_pid() { # NAME -> its pid, while it is alive
  local pid="" started=""
  [ -f "$STATE/run/$1.pid" ] || return 1
  read -r pid started _ <"$STATE/run/$1.pid" || true
  [ -n "$started" ] && [ "$(start_time "$pid")" = "$started" ] || return 1
  printf '%s' "$pid"
}

proc_alive() { proc_pid "$1" >/dev/null; }

# proc_ensure NAME CGROUP COMMAND...: starts the command unless it already runs as given.
proc_ensure() {
  local name=$1 hash recorded=""
  hash=$(printf '%q ' "${@:2}" | short_hash)
  if proc_alive "$name"; then
    read -r _ _ recorded <"$STATE/run/$name.pid"
    [ "$recorded" != "$hash" ] || return 0
    say "$name: its command has changed"
  fi
  proc_stop "$name"
  proc_start "$@"
}

# A clean environment: a proxy or a KUBECONFIG of the caller must not reach the cluster's programs.
proc_start() { # NAME CGROUP COMMAND...
  local name=$1 group=$2 hash pid
  hash=$(printf '%q ' "${@:2}" | short_hash)
  shift 2
  (
    # shellcheck disable=SC2030  # meant for this process alone
    [ -z "${BM_LOCK_FD:-}" ] || exec {BM_LOCK_FD}>&-
    cgroup_join "$group"
    cd "$STATE" || exit 1
    exec env -i PATH="$PATH" HOME="$HOME" LANG=C setsid "$@"
  ) </dev/null >>"$STATE/log/$name.log" 2>&1 &
  pid=$!
  disown "$pid"
  printf '%s %s %s\n' "$pid" "$(start_time "$pid")" "$hash" >"$STATE/run/$name.pid"
}

# proc_stop NAME [SECONDS]: asks it to end, and kills it when it has not within SECONDS (default 5).
proc_stop() {
  local pid deadline=$((SECONDS + ${2:-5}))
  if pid=$(proc_pid "$1"); then
    kill -TERM "$pid" 2>/dev/null || true
    while proc_alive "$1"; do
      if [ $SECONDS -ge $deadline ]; then kill -KILL "$pid" 2>/dev/null || true; fi
      sleep 0.05
    done
  fi
  rm -f "$STATE/run/$1.pid"
}

# wait_until SECONDS WHAT PROCESS COMMAND...: tries COMMAND until it succeeds; gives up when PROCESS
# has died or the time is over, and shows the end of the process's log.
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2 process=$3
  shift 3
  until "$@" >/dev/null 2>&1; do
    if ! proc_alive "$process"; then
      tail -n 20 "$STATE/log/$process.log" >&2 || true
      die "$process has ended, so there is no $what" "the whole log is $STATE/log/$process.log"
    fi
    if [ $SECONDS -ge $deadline ]; then
      tail -n 20 "$STATE/log/$process.log" >&2 || true
      die "no $what in time" "see the logs in $STATE/log; a loaded machine may need another try"
    fi
    sleep 0.2
  done
}
