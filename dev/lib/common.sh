# shellcheck shell=bash
# Shared by every command in dev/: paths, messages, timed steps. Source it, do not run it.
set -euo pipefail

: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME
BM_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BM_CACHE=${BIMETAL_CACHE:-$HOME/.cache/bimetal}
BM_LIB=$BM_ROOT/dev/lib
export BM_ROOT BM_CACHE BM_LIB

# Messages go to stderr, so that stdout holds only what a caller may want to read.
say() { printf '%s\n' "$*" >&2; }

# die WHAT REMEDY...: one line that says what is wrong, then what to do about it.
die() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  shift
  [ $# -eq 0 ] || printf '  %s\n' "$@" >&2
  exit 1
}

unknown_argument() { die "unknown argument '$1'" "see: dev/$(basename "$0") --help"; }

# value_of OPTION COUNT VALUE: the option's value, where COUNT arguments are left with the option.
value_of() {
  [ "$2" -ge 2 ] || die "$1 needs a value" "see: dev/$(basename "$0") --help"
  printf '%s' "$3"
}

need_root() {
  [ "$(id -u)" -eq 0 ] || die "$1 needs root" "run it as root, for example: sudo -E $0"
}

need_number() { # OPTION VALUE MIN MAX
  [[ $2 =~ ^[0-9]{1,6}$ ]] && [ "$2" -ge "$3" ] && [ "$2" -le "$4" ] ||
    die "$1 must be a whole number from $3 to $4, not '$2'"
}

# need_program PROGRAM PACKAGE
need_program() {
  command -v "$1" >/dev/null || die "$1 is not installed" "run dev/setup (it comes with $2)"
}

# Sixteen hexadecimal digits that name the content of stdin.
short_hash() { sha256sum | cut -c1-16; }

# step LABEL LOG COMMAND...: runs a long command with its output in LOG, says every 20 s that it is
# still at work, and ends this program with the end of LOG when it fails. Never call it where bash
# ignores errors (after `if`, before `||`): the command would then run on after its own failures.
step() {
  local label=$1 log=$2 start=$SECONDS beat work rc=0
  shift 2
  mkdir -p "$(dirname "$log")"
  say "$label ..."
  "$@" >"$log" 2>&1 </dev/null &
  work=$!
  heartbeat "$label" "$log" &
  beat=$!
  # shellcheck disable=SC2064  # the ids of now
  trap "kill $work $beat 2>/dev/null; exit 130" INT TERM
  wait "$work" || rc=$?
  trap - INT TERM
  kill "$beat" 2>/dev/null || true
  wait "$beat" 2>/dev/null || true
  [ $rc -eq 0 ] || {
    say "$label: failed after $((SECONDS - start)) s; the end of $log:"
    tail -n 25 "$log" >&2 || true
    exit $rc
  }
  say "$label: done in $((SECONDS - start)) s"
}

heartbeat() {
  local start=$SECONDS clock
  # A read that times out waits without a child that could outlive us.
  exec {clock}<> <(:)
  while true; do
    read -r -t 20 -u "$clock" || true
    say "  $1: $((SECONDS - start)) s, $(wc -l <"$2" 2>/dev/null || echo 0) lines of output"
  done
}

# hold_lock FILE WHAT: waits until no other process holds FILE, then holds it until this shell ends.
# Daemons must be started with this descriptor closed (see process.sh).
hold_lock() {
  mkdir -p "$(dirname "$1")"
  exec {BM_LOCK_FD}>"$1"
  if ! flock -n "$BM_LOCK_FD"; then
    say "another command is at work on $2: waiting"
    flock -w 1800 "$BM_LOCK_FD" || die "$2 is still busy after 30 minutes" "see who holds $1"
  fi
  # The one before us may have removed the file: then a third would not see our lock.
  if [ -e "/proc/self/fd/$BM_LOCK_FD" ] && ! [ "$1" -ef "/proc/self/fd/$BM_LOCK_FD" ]; then
    exec {BM_LOCK_FD}>&-
    hold_lock "$@"
  fi
}
