# shellcheck shell=bash
# Stages a program for an image: the program and the shared objects that it needs, in a folder that a
# Containerfile copies to /.

# What every public base image of Debian's kind brings itself.
BM_BASE_OBJECTS='^(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv|libstdc\+\+|libgcc_s)\.so'

# stage_program ROOTFS PROGRAM [foreign]: `foreign` leaves out what a public base image brings, so
# that its own C library stays in place.
stage_program() {
  local rootfs=$1 program=$2 kind=${3:-} object name target
  mkdir -p "$rootfs/usr/bin"
  cp "$program" "$rootfs/usr/bin/"
  strip --strip-unneeded "$rootfs/usr/bin/$(basename "$program")"
  for object in $(shared_objects "$program"); do
    name=$(basename "$object")
    if [ "$kind" = foreign ] && [[ $name =~ $BM_BASE_OBJECTS ]]; then continue; fi
    target=$(realpath "$(dirname "$object")")/$name
    mkdir -p "$rootfs$(dirname "$target")"
    cp -L "$object" "$rootfs$target"
  done
}

shared_objects() { # PROGRAM -> paths
  local listing
  listing=$(ldd "$1" 2>&1) || {
    [[ $listing == *"not a dynamic executable"* || $listing == *"statically linked"* ]] && return 0
    die "ldd failed on $1: $listing"
  }
  ! grep 'not found' <<<"$listing" >&2 || die "$1 needs shared objects that this machine lacks" "run dev/setup"
  awk '$2 == "=>" && $3 ~ /^\// {print $3} $1 ~ /^\// {print $1}' <<<"$listing" | sort -u
}

# The few files that programs expect of a system, for images that start from nothing.
stage_base() { # ROOTFS
  local dir
  for dir in lib lib64; do
    mkdir -p "$1/usr/$dir"
    ln -sfn "usr/$dir" "$1/$dir"
  done
  mkdir -p "$1"/{etc/ssl/certs,proc,sys,dev,run,var/lib,tmp}
  chmod 1777 "$1/tmp"
  printf 'root:x:0:0:root:/:/sbin/nologin\nbimetal:x:65532:65532:bimetal:/:/sbin/nologin\n' >"$1/etc/passwd"
  printf 'root:x:0:\nbimetal:x:65532:\n' >"$1/etc/group"
  printf 'hosts: files dns\n' >"$1/etc/nsswitch.conf"
  [ ! -f /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/"
}
