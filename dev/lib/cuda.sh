# shellcheck shell=bash
# The CUDA compiler from Python wheels (dev/cuda-requirements.txt), in a folder of its own, and the
# disassemblers of the tests (dev/cuda-inspect-requirements.txt) in another: they may change without
# a build of every kernel.

cuda_root() {
  printf '%s/cuda-%s' "$BM_CACHE" "$(short_hash <"$BM_ROOT/dev/cuda-requirements.txt")"
}

cuda_home() { printf '%s/nvidia/cu13' "$(cuda_root)"; }

cuda_inspect_root() {
  printf '%s/cuda-inspect-%s' "$BM_CACHE" "$(short_hash <"$BM_ROOT/dev/cuda-inspect-requirements.txt")"
}

cuda_ready() { [ -f "$(cuda_root)/.complete" ] && [ -f "$(cuda_inspect_root)/.complete" ]; }

# install_wheels ROOT REQUIREMENTS PROGRAM: the wheels' files in ROOT, proven by running the program.
install_wheels() {
  local root=$1 staging
  staging=$root.partial
  rm -rf "$staging"
  mkdir -p "$staging"
  # The virtual environment serves only to have a pip; what it installs needs no Python to run.
  python3 -m venv "$staging/.pip"
  "$staging/.pip/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --target "$staging" -r "$BM_ROOT/dev/$2"
  rm -rf "$staging/.pip"
  "$staging/nvidia/cu13/bin/$3" --version
  touch "$staging/.complete"
  rm -rf "$root"
  mv "$staging" "$root"
}

setup_cuda() {
  if ! cuda_ready; then
    need_program python3 python3
    if [ ! -f "$(cuda_root)/.complete" ]; then
      step "installing the CUDA compiler" "$BM_CACHE/log/cuda.log" \
        install_wheels "$(cuda_root)" cuda-requirements.txt nvcc
    fi
    if [ ! -f "$(cuda_inspect_root)/.complete" ]; then
      step "installing the CUDA disassemblers" "$BM_CACHE/log/cuda-inspect.log" \
        install_wheels "$(cuda_inspect_root)" cuda-inspect-requirements.txt nvdisasm
    fi
  fi
  # A name that does not change with the version, for build files and people.
  if [ "$(readlink "$BM_CACHE/cuda" 2>/dev/null)" != "$(cuda_home)" ]; then
    ln -sfn "$(cuda_home)" "$BM_CACHE/cuda"
  fi
}
