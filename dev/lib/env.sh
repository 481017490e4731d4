#!/usr/bin/env bash
# The environment of the developer tools. As a program it prints export lines:
#   eval "$(dev/lib/env.sh)"     puts kubectl, helm, ctr, etcd, ... and nvcc in PATH
# shellcheck source=common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tools.sh
source "$BM_LIB/tools.sh"
# shellcheck source=cuda.sh
source "$BM_LIB/cuda.sh"

PATH=$(tools_path):$PATH:/usr/sbin:/sbin
BIMETAL_NVCC=$(cuda_home)/bin/nvcc
export PATH BIMETAL_NVCC

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  printf 'export PATH=%q\nexport BIMETAL_NVCC=%q\n' "$PATH" "$BIMETAL_NVCC"
fi
