# shellcheck shell=bash
# The commands of dev/cluster.

SERVICE_API_IP=10.96.0.1
SERVICE_DNS_IP=10.96.0.10

# Names of the cluster in use; the slot is known once the bridge exists.
cluster_names() {
  STATE=$BM_CLUSTERS/$NAME
  KUBECTL=$(command -v kubectl) || KUBECTL=kubectl
}

slot_names() { # SLOT
  SLOT=$1
  BRIDGE=bimetal$SLOT
  HOST_IP=172.30.$SLOT.1
  API_URL=https://$HOST_IP:6443
  CGROUP=bimetal-$SLOT
}

kc() { "$KUBECTL" --kubeconfig "$STATE/admin.kubeconfig" "$@"; }

node_count() {
  local count=0
  [ ! -f "$STATE/nodes.count" ] || read -r count <"$STATE/nodes.count"
  printf '%s' "$count"
}

need_cluster() {
  local slot
  cluster_names
  slot=$(slot_of_state "$STATE") && [ -f "$STATE/admin.kubeconfig" ] ||
    die "no cluster '$NAME' is up" "start it: dev/cluster up --name $NAME"
  slot_names "$slot"
}

# --- up

command_up() {
  local nodes="" hollow="" gpus="" vendor="" audit=""
  while [ $# -gt 0 ]; do
    case $1 in
      --name) NAME=$(value_of "$1" $# "${2:-}"); shift ;;
      --nodes) nodes=$(value_of "$1" $# "${2:-}"); need_number --nodes "$nodes" 1 16; shift ;;
      --hollow) hollow=$(value_of "$1" $# "${2:-}"); need_number --hollow "$hollow" 0 9999; shift ;;
      --gpus) gpus=$(value_of "$1" $# "${2:-}"); need_number --gpus "$gpus" 0 64; shift ;;
      --vendor)
        vendor=$(value_of "$1" $# "${2:-}")
        case $vendor in nvidia | amd | mixed) ;; *) die "--vendor must be nvidia, amd or mixed, not '$vendor'" ;; esac
        shift
        ;;
      --audit) audit=1 ;;
      *) unknown_argument "$1" ;;
    esac
    shift
  done
  [ -n "$hollow" ] || [ -z "$gpus$vendor" ] || die "--gpus and --vendor describe hollow nodes" "add --hollow N"
  need_root "a cluster"
  cluster_names
  mkdir -p "$STATE" 2>/dev/null || die "cannot make the state folder $STATE" "set BIMETAL_CLUSTER to another one"
  hold_lock "$BM_CLUSTERS/$NAME.lock" "cluster '$NAME'"
  mkdir -p "$STATE"
  up_slot
  up_wishes "$nodes" "$hollow" "${gpus:-8}" "${vendor:-nvidia}" "$audit"
  if up_already; then
    say "cluster '$NAME' is up: $(node_count) nodes, $(hollow_count) hollow"
  else
    up_start
  fi
  up_words
}

# Takes a slot, or the one that the cluster has. Without its bridge (the host was restarted) nothing
# of an earlier cluster can be used.
up_slot() {
  local slot
  if slot=$(slot_of_state "$STATE"); then
    slot_names "$slot"
    return
  fi
  [ ! -d "$STATE/etcd" ] || say "cluster '$NAME' was left behind half dead: starting afresh"
  rm -rf --one-file-system "$STATE"
  mkdir -p "$STATE"
  slot=$(slot_take)
  slot_names "$slot"
  # A group of the same number is a remainder of a cluster that was not taken down.
  cgroup_kill "$CGROUP"
}

up_wishes() { # NODES HOLLOW GPUS VENDOR AUDIT
  local have
  have=$(node_count)
  [ -z "$1" ] || [ "$1" -ge "$have" ] ||
    die "cluster '$NAME' has $have nodes; it cannot shrink to $1" "dev/cluster down --name $NAME, then up again"
  local want=${1:-$have}
  [ "$want" -gt 0 ] || want=4
  [ "$want" = "$have" ] || { rm -f "$STATE/ready"; echo "$want" >"$STATE/nodes.count"; }
  local old_count=0 old_kind=""
  [ ! -f "$STATE/hollow" ] || read -r old_count old_kind <"$STATE/hollow"
  [ -z "$2" ] || [ "$2" -eq 0 ] || [ "$old_count" -eq 0 ] || [ "$old_kind" = "$3 $4" ] ||
    die "the hollow nodes of cluster '$NAME' have $old_kind GPUs; they cannot become $3 $4" \
      "remove them first: dev/cluster up --name $NAME --hollow 0"
  if [ -n "$2" ] && [ "$2 $3 $4" != "$old_count $old_kind" ]; then
    rm -f "$STATE/ready"
    echo "$2 $3 $4" >"$STATE/hollow"
  fi
  if [ -n "$5" ] && [ ! -f "$STATE/audit" ]; then
    rm -f "$STATE/ready"
    touch "$STATE/audit"
  fi
}

cluster_processes() {
  local index
  printf '%s\n' etcd apiserver controller-manager scheduler coredns
  [ ! -f "$STATE/hollow" ] || echo kwok
  for ((index = 1; index <= $(node_count); index++)); do
    printf "node-$index-%s\n" keeper containerd kubelet proxy
  done
}

up_already() {
  local process
  [ -f "$STATE/ready" ] || return 1
  for process in $(cluster_processes); do proc_alive "$process" || return 1; done
  kc get --raw /readyz >/dev/null 2>&1
}

up_start() {
  local start=$SECONDS index count
  count=$(node_count)
  rm -f "$STATE/ready"
  up_needs
  host_limits
  mkdir -p "$STATE"/{pki,log,run,config,nodes}
  chmod 700 "$STATE" "$STATE/pki"
  pause_build
  network_up
  pki_control_plane
  cgroup_create "$CGROUP/control"
  if proc_alive apiserver; then
    say "cluster '$NAME' ($BRIDGE): mending what is missing"
  else
    say "cluster '$NAME' ($BRIDGE): starting the control plane"
  fi
  etcd_ensure
  apiserver_ensure
  for ((index = 1; index <= count; index++)); do up_node_early "$index"; done
  routes_up "$count"
  for ((index = 1; index <= count; index++)); do node_containerd_ensure "$index"; done
  apiserver_wait
  say "cluster '$NAME': API server answers after $((SECONDS - start)) s"
  managers_ensure
  addons_apply
  coredns_ensure
  for ((index = 1; index <= count; index++)); do
    node_containerd_wait "$index"
    node_kubelet_ensure "$index"
  done
  hollow_ensure
  wait_until 120 "$count Ready nodes" node-1-kubelet nodes_all_ready "$count"
  hollow_wait
  touch "$STATE/ready"
  say "cluster '$NAME': up in $((SECONDS - start)) s"
}

up_needs() {
  local program
  for program in etcd kube-apiserver containerd helm coredns kwok; do
    command -v $program >/dev/null || die "$program is not built" "run dev/setup --tools"
  done
  need_program runc runc
  need_program iptables iptables
  need_program nsenter util-linux
  need_program openssl openssl
  [ -x /usr/lib/cni/bridge ] || die "the CNI programs are not installed" "run dev/setup --packages"
}

# Several kubelets and containerds watch many files.
host_limits() {
  local now
  now=$(sysctl -n fs.inotify.max_user_instances)
  [ "$now" -ge 1024 ] || sysctl -qw fs.inotify.max_user_instances=1024 ||
    say "warning: fs.inotify.max_user_instances is $now; kubelets may fail to start"
}

up_node_early() { # INDEX
  local node=node-$1
  node_config "$1"
  cgroup_create "$CGROUP/$node/system"
  cgroup_create "$CGROUP/$node/pods"
  node_network_up "$1"
  node_keeper_ensure "$1"
}

nodes_all_ready() { # COUNT
  [ "$(kc get nodes -l '!bimetal.dev/hollow' --no-headers 2>/dev/null | awk '$2 ~ /^Ready/' | wc -l)" -ge "$1" ]
}

up_words() {
  local again=""
  [ "$NAME" = default ] || again=" --name $NAME"
  say "  export KUBECONFIG=$STATE/admin.kubeconfig    (kubectl: dev/cluster kubectl$again ...)"
  say "  stop it with: dev/cluster down$again"
}

# --- down

command_down() {
  local all="" state
  while [ $# -gt 0 ]; do
    case $1 in
      --name) NAME=$(value_of "$1" $# "${2:-}"); shift ;;
      --all) all=1 ;;
      *) unknown_argument "$1" ;;
    esac
    shift
  done
  need_root "taking a cluster down"
  if [ -z "$all" ]; then
    down_one
    return
  fi
  for state in "$BM_CLUSTERS"/*/; do
    [ -d "$state" ] || continue
    NAME=$(basename "$state")
    (down_one)
  done
}

down_one() {
  local slot start=$SECONDS
  cluster_names
  if ! slot=$(slot_of_state "$STATE") && [ ! -d "$STATE" ]; then
    say "no cluster '$NAME': nothing to take down"
    return
  fi
  hold_lock "$BM_CLUSTERS/$NAME.lock" "cluster '$NAME'"
  rm -f "$STATE/ready"
  if [ -n "$slot" ]; then
    slot_names "$slot"
    # All at once and without mercy: an API server that is asked to end after etcd lingers a minute.
    cgroup_kill "$CGROUP"
    down_host "$slot"
  fi
  rm -rf --one-file-system "$STATE"
  rm -f "$BM_CLUSTERS/$NAME.lock"
  rmdir "$BM_CLUSTERS" 2>/dev/null || true
  say "cluster '$NAME': down in $((SECONDS - start)) s"
}

down_host() { # SLOT
  local netns
  for netns in /run/netns/bimetal"$1"-node-*; do
    [ -e "$netns" ] && node_network_down "$1" "${netns##*-}"
  done
  cgroup_remove "$CGROUP"
  # Last, because the bridge is what marks the slot as taken.
  network_down "$1"
}

# --- the others

command_load() {
  local archive index jobs=() job failed=0 start=$SECONDS
  [ "${1:-}" != --name ] || { NAME=$(value_of "$1" $# "${2:-}"); shift 2; }
  [ $# -gt 0 ] || die "no archive given" "dev/cluster load ARCHIVE... (dev/images builds and names them)"
  need_root "loading images"
  need_cluster
  for archive in "$@"; do
    [ -f "$archive" ] || die "no such archive: $archive" "dev/images builds and names them"
  done
  for ((index = 1; index <= $(node_count); index++)); do
    load_node "$index" "$@" >"$STATE/log/load-$index.log" 2>&1 &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  if [ $failed -ne 0 ]; then
    for index in "$STATE"/log/load-*.log; do tail -n 3 "$index" >&2; done
    die "not every node took every archive"
  fi
  say "loaded $# archives into $(node_count) nodes in $((SECONDS - start)) s"
}

# dev/images names an archive IMAGE-HASH.tar; the hash becomes a second tag, for those who need a
# reference that changes with the content.
load_node() { # INDEX ARCHIVE...
  local index=$1 archive reference
  for archive in "${@:2}"; do
    archive=$(realpath "$archive")
    node_ctr "$index" images import --local "$archive" 2>&1 || return 1
    [[ $archive =~ -([0-9a-f]{16})\.tar$ ]] || continue
    reference=$(tar -xOf "$archive" manifest.json 2>/dev/null | jq -r '.[0].RepoTags[0] // empty')
    [ -z "$reference" ] || node_ctr "$index" images tag --force "$reference" "${reference%:*}:${BASH_REMATCH[1]}" || return 1
  done
}

command_kubeconfig() {
  [ "${1:-}" != --name ] || { NAME=$(value_of "$1" $# "${2:-}"); shift 2; }
  [ $# -eq 0 ] || unknown_argument "$1"
  need_cluster
  printf '%s\n' "$STATE/admin.kubeconfig"
}

command_path() {
  [ "${1:-}" != --name ] || { NAME=$(value_of "$1" $# "${2:-}"); shift 2; }
  [ $# -eq 0 ] || unknown_argument "$1"
  cluster_names
  printf '%s\n' "$STATE"
}

command_kubectl() {
  need_cluster
  kc "$@"
}

command_status() {
  local process pid dead=0
  [ "${1:-}" != --name ] || { NAME=$(value_of "$1" $# "${2:-}"); shift 2; }
  [ $# -eq 0 ] || unknown_argument "$1"
  need_cluster
  for process in $(cluster_processes); do
    if pid=$(proc_pid "$process"); then
      printf '%-22s running  pid %s\n' "$process" "$pid"
    else
      printf '%-22s DEAD     see %s\n' "$process" "$STATE/log/$process.log"
      dead=1
    fi
  done
  kc get nodes -l '!bimetal.dev/hollow' || dead=1
  [ "$(hollow_count)" -eq 0 ] || printf 'hollow nodes: %s\n' "$(cat "$STATE/hollow")"
  [ -f "$STATE/ready" ] || { echo "the last up did not finish"; dead=1; }
  return $dead
}

node_index() { # NAME
  [[ $1 =~ ^node-([0-9]{1,2})$ ]] && [ "${BASH_REMATCH[1]}" -ge 1 ] && [ "${BASH_REMATCH[1]}" -le "$(node_count)" ] ||
    die "no node '$1' in cluster '$NAME'" "its real nodes are node-1 to node-$(node_count)"
  printf '%s' "${BASH_REMATCH[1]}"
}

command_node() {
  local index
  [ "${1:-}" != --name ] || { NAME=$(value_of "$1" $# "${2:-}"); shift 2; }
  [ $# -ge 2 ] || die "a node and a command are needed" "dev/cluster node NAME CMD..."
  need_root "entering a node"
  need_cluster
  index=$(node_index "$1")
  shift
  if [ "$1" = --kill ]; then
    hold_lock "$BM_CLUSTERS/$NAME.lock" "cluster '$NAME'"
    rm -f "$STATE/ready"
    node_stop "$index"
    return
  fi
  node_enter "$index"
  exec "${NODE_ENTER[@]}" "$@"
}

command_restart() {
  local start=$SECONDS
  [ "${1:-}" != --name ] || { NAME=$(value_of "$1" $# "${2:-}"); shift 2; }
  [ $# -eq 1 ] || die "one part is needed" "see: dev/cluster --help"
  case $1 in
    apiserver | etcd | scheduler | controller-manager | coredns | kwok) ;;
    *) die "cannot restart '$1'" "one of apiserver, etcd, scheduler, controller-manager, coredns, kwok" ;;
  esac
  need_root "restarting a part"
  need_cluster
  hold_lock "$BM_CLUSTERS/$NAME.lock" "cluster '$NAME'"
  proc_stop "$1" 2
  etcd_ensure
  apiserver_ensure
  apiserver_wait
  managers_ensure
  coredns_ensure
  hollow_ensure
  say "$1 restarted in $((SECONDS - start)) s"
}
