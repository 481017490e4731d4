# shellcheck shell=bash
# Container images without a daemon or a registry: an image is built with buildah from a staged
# folder and kept as an archive named after everything that decides its content.

BM_IMAGES=$BM_CACHE/images

# buildah with a store of its own inside the cache; chroot isolation needs no runtime.
builder() {
  buildah --storage-driver vfs --root "$BM_CACHE/buildah" --runroot "$BM_CACHE/buildah-run" "$@"
}

# A hash of a folder: names, modes, link targets and contents, no times or owners.
folder_hash() { # FOLDER
  (
    cd "$1" || exit 1
    find . -printf '%p %m %y %l\n' | sort
    find . -type f -print0 | sort -z | xargs -0 -r sha256sum
  ) | short_hash
}

image_archive() { # NAME CONTEXT CONTAINERFILE BUILD-ARGUMENTS... -> the archive's path
  local key
  key=$({ folder_hash "$2"; cat "$3"; printf '%q ' "${@:4}"; } | short_hash)
  printf '%s/%s-%s.tar' "$BM_IMAGES" "$1" "$key"
}

# image_build NAME REFERENCE CONTEXT CONTAINERFILE [BUILD-ARGUMENT...]: leaves the archive in $IMAGE_ARCHIVE,
# and removes the earlier archives of the same name.
image_build() {
  local name=$1 reference=$2 context=$3 file=$4 archive old argument arguments=()
  shift 4
  archive=$(image_archive "$name" "$context" "$file" "$@")
  IMAGE_ARCHIVE=$archive
  [ ! -f "$archive" ] || return 0
  need_program buildah buildah
  mkdir -p "$BM_IMAGES"
  for argument in "$@"; do arguments+=(--build-arg "$argument"); done
  step "building image $reference" "$BM_CACHE/log/image-$name.log" \
    image_make "$reference" "$context" "$file" "$archive" "${arguments[@]}"
  for old in "$BM_IMAGES/$name"-????????????????.tar; do
    [ "$old" = "$archive" ] || rm -f "$old"
  done
}

image_make() { # REFERENCE CONTEXT CONTAINERFILE ARCHIVE ARGUMENT...
  local reference=$1 context=$2 file=$3 archive=$4
  shift 4
  builder bud --isolation chroot --timestamp 0 --tag "$reference" "$@" -f "$file" "$context"
  rm -f "$archive.partial"
  # Docker's archive format keeps layers uncompressed (the OCI one would not): the archive never
  # travels, and each node would only unpack it again.
  builder push "$reference" "docker-archive:$archive.partial:$reference"
  mv "$archive.partial" "$archive"
  builder rmi --force "$reference"
  builder rmi --prune >/dev/null 2>&1 || true
}
