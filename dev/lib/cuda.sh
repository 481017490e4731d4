# shellcheck shell=bash
# The CUDA compiler from Python wheels (dev/cuda-requirements.txt), in a folder of its own.

cuda_root() {
  printf '%s/cuda-%s' "$BM_CACHE" "$(short_hash <"$BM_ROOT/dev/cuda-requirements.txt")"
}

cuda_home() { printf '%s/nvidia/cu13' "$(cuda_root)"; }

cuda_ready() { [ -f "$(cuda_root)/.complete" ]; }

install_cuda() {
  local root staging
  root=$(cuda_root)
  staging=$root.partial
  rm -rf "$staging"
  mkdir -p "$staging"
  # The virtual environment serves only to have a pip; what it installs needs no Python to run.
  python3 -m venv "$staging/.pip"
  "$staging/.pip/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile \
    --target "$staging" -r "$BM_ROOT/dev/cuda-requirements.txt"
  rm -rf "$staging/.pip"
  "$staging/nvidia/cu13/bin/nvcc" --version
  touch "$staging/.complete"
  rm -rf "$root"
  mv "$staging" "$root"
}

setup_cuda() {
  if ! cuda_ready; then
    need_program python3 python3
    step "installing the CUDA compiler" "$BM_CACHE/log/cuda.log" install_cuda
  fi
  # A name that does not change with the version, for build files and people.
  if [ "$(readlink "$BM_CACHE/cuda" 2>/dev/null)" != "$(cuda_home)" ]; then
    ln -sfn "$(cuda_home)" "$BM_CACHE/cuda"
  fi
}
