# shellcheck shell=bash
# The sandbox image, built once: a static program on nothing.

PAUSE_IMAGE=localhost/pause:1

pause_build() { # sets PAUSE_ARCHIVE
  local stage=$BM_CACHE/stage/pause source=$BM_LIB/cluster/pause.c
  if [ ! -x "$stage/pause" ] || [ "$source" -nt "$stage/pause" ]; then
    need_program cc build-essential
    mkdir -p "$stage"
    cc -O2 -static -s -o "$stage/pause.new" "$source"
    mv "$stage/pause.new" "$stage/pause"
  fi
  image_build pause "$PAUSE_IMAGE" "$stage" "$BM_LIB/cluster/pause.Containerfile"
  PAUSE_ARCHIVE=$IMAGE_ARCHIVE
}
