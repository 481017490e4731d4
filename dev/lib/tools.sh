# shellcheck shell=bash
# The Go programs of the local cluster: one folder of dev/tools a family, because their dependencies
# do not agree. Each is built once into a folder named after everything that decides its content.

BM_TOOL_FAMILIES=(kubernetes node helm coredns kwok)
BM_PEER_FAMILIES=(kueue) # what we are measured beside; built where it is asked for alone
BM_GO_MIN=1.26

module_version() { # FAMILY MODULE
  awk -v module="$2" '$1 == module && $2 ~ /^v/ {print $2; exit}' "$BM_ROOT/dev/tools/$1/go.mod"
}

family_ldflags() {
  local flags="-s -w" version minor
  if [ "$1" = kubernetes ]; then
    # Without these every component calls itself v0.0.0 and a chart's kubeVersion refuses it.
    version=$(module_version kubernetes k8s.io/kubernetes)
    minor=${version#v1.}
    flags+=" -X k8s.io/component-base/version.gitVersion=$version"
    flags+=" -X k8s.io/component-base/version.gitMajor=1"
    flags+=" -X k8s.io/component-base/version.gitMinor=${minor%%.*}"
  fi
  printf '%s' "$flags"
}

family_dir() { # FAMILY -> the folder of its programs, whether or not it exists yet
  local dir=$BM_ROOT/dev/tools/$1
  printf '%s/tools/%s-%s/bin' "$BM_CACHE" "$1" \
    "$({ cat "$dir/go.mod" "$dir/go.sum" 2>/dev/null; family_ldflags "$1"; } | short_hash)"
}

# The folders of all programs, joined for PATH. BIMETAL_TOOLS (a folder of ready programs) wins.
tools_path() {
  local family path=${BIMETAL_TOOLS:-}
  for family in "${BM_TOOL_FAMILIES[@]}"; do
    path+=${path:+:}$(family_dir "$family")
  done
  printf '%s' "$path"
}

tools_missing() { # prints the families that are not built yet
  local family
  [ -z "${BIMETAL_TOOLS:-}" ] || return 0
  for family in "${BM_TOOL_FAMILIES[@]}"; do
    [ -f "$(family_dir "$family")/.complete" ] || printf '%s\n' "$family"
  done
}

check_go() {
  local remedy="install Go $BM_GO_MIN or newer from go.dev/doc/install and put its bin folder in PATH"
  local found
  command -v go >/dev/null || die "Go is not installed: the cluster's programs are built with it" "$remedy"
  # Asked inside a module of ours, so that an older Go may fetch the toolchain the module names.
  found=$(cd "$BM_ROOT/dev/tools/node" && go env GOVERSION 2>/dev/null) ||
    die "$(go version 2>/dev/null || echo 'this Go') cannot provide Go $BM_GO_MIN" "$remedy"
  found=${found#go}
  [ "$(printf '%s\n' "$BM_GO_MIN" "$found" | sort -V | head -n 1)" = "$BM_GO_MIN" ] ||
    die "Go $found is too old: $BM_GO_MIN is needed" "$remedy"
}

build_family() { # FAMILY
  local family=$1 bin staging
  bin=$(family_dir "$family")
  staging=$(dirname "$bin").partial
  rm -rf "$staging"
  mkdir -p "$staging/bin"
  (
    cd "$BM_ROOT/dev/tools/$family" || exit 1
    export GOFLAGS="-buildvcs=false -mod=readonly" CGO_ENABLED=0
    go build -v -trimpath -ldflags "$(family_ldflags "$family")" -o "$staging/bin/" tool
    if [ "$family" = kwok ]; then copy_kwok_stages "$staging/bin"; fi
    if [ "$family" = kueue ]; then copy_kueue_crds "$staging/bin"; fi
  )
  # The last element of etcd's import path is `server`.
  [ "$family" != node ] || mv "$staging/bin/server" "$staging/bin/etcd"
  touch "$staging/bin/.complete"
  rm -rf "$(dirname "$bin")"
  mv "$staging" "$(dirname "$bin")"
}

# kwok has no built-in stages; those of its own source tree are kept beside the program.
copy_kwok_stages() {
  local source file
  source=$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
  for file in "$source"/node/fast/*.yaml "$source"/node/heartbeat-with-lease/*.yaml "$source"/pod/fast/*.yaml; do
    case $file in */kustomization.yaml) continue ;; esac
    echo "---"
    cat "$file"
    echo
  done >"$1/stages.yaml"
}

copy_kueue_crds() {
  cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)/config/components/crd/bases" "$1/crds"
  chmod -R u+w "$1/crds"
}

peers_missing() {
  local family
  for family in "${BM_PEER_FAMILIES[@]}"; do
    [ -f "$(family_dir "$family")/.complete" ] || printf '%s\n' "$family"
  done
}

setup_tools() { build_families tools_missing; }
setup_peers() { build_families peers_missing; }

build_families() { # COMMAND that names those that are missing
  local missing family
  mapfile -t missing < <("$1")
  [ ${#missing[@]} -gt 0 ] || return 0
  need_program git git
  check_go
  for family in "${missing[@]}"; do
    step "building the Go programs of dev/tools/$family" "$BM_CACHE/log/tools-$family.log" \
      build_family "$family"
  done
}
