#!/usr/bin/env bash
# Holds every shell script of the project against shellcheck; one TAP line a script.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1

failed=0
while read -r script; do
  # A program is read together with what it sources, a library alone.
  if [ -x "$script" ]; then flags=(-x); else flags=(-e SC1091); fi
  if findings=$(shellcheck "${flags[@]}" -f gcc "$script"); then
    echo "ok $script"
  else
    echo "not ok $script"
    echo "$findings"
    failed=1
  fi
done < <(grep -rlIE --exclude-dir=tools '^#!.*\bbash$|^# shellcheck shell=bash' .ci dev tests | sort)
exit $failed
