#!/usr/bin/env bash
# Tests the local cluster tool (dev/cluster) by using it: two clusters of its own, started, used,
# hurt, mended and taken down. Prints one TAP line a case. Needs root and a set-up machine.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
SCRATCH=$(mktemp -d)
export BIMETAL_CLUSTER=$SCRATCH/clusters
ME=selftest OTHER=selftest-b
TOOL=$ROOT/dev/cluster
FAILED=0

cluster() { "$TOOL" "$1" --name "$ME" "${@:2}"; }
kubectl() { "$TOOL" kubectl --name "$ME" "$@"; }
state() { cluster path; }

# fails_with TEXT COMMAND...: the command fails, and says TEXT.
fails_with() {
  local text=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "succeeded, but should not: $*"
    return 1
  fi
  grep -qF -- "$text" <<<"$output" || {
    echo "'$*' did not say '$text' but: $output"
    return 1
  }
}

expect() { # WHAT WANTED FOUND
  [ "$2" = "$3" ] || {
    echo "$1: wanted '$2', found '$3'"
    return 1
  }
}

eventually() { # SECONDS COMMAND...
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || {
      echo "did not come true in time: $*"
      return 1
    }
    sleep 0.3
  done
}

# check NAME FUNCTION: runs the function in a shell of its own that ends at its first failure.
check() {
  local log=$SCRATCH/case.log job
  (
    set -euo pipefail
    "$2"
  ) >"$log" 2>&1 &
  job=$!
  if wait "$job"; then
    echo "ok $1"
  else
    echo "not ok $1"
    sed 's/^/    /' "$log" | tail -n 30
    FAILED=1
  fi
}

# Everything of the host that a cluster may touch. Other clusters may come and go meanwhile, so only
# what our own state folder or slots name is listed.
traces() {
  local slot
  grep -F "$SCRATCH" /proc/mounts || true
  for slot in $SLOTS; do
    ip -o link | grep -oE "(bimetal$slot|bm$slot-n[0-9]+)\b" || true
    ip netns | grep -oE "^bimetal$slot-node-[0-9]+" || true
    ip route | grep -E "^(172\.30\.$slot|10\.$((128 + slot)))\." || true
    iptables -w -S | grep -w "bimetal$slot" || true
    find /sys/fs/cgroup -maxdepth 2 -name "bimetal-$slot"
  done
  local dir
  for dir in /proc/[0-9]*; do
    tr '\0' ' ' <"$dir/cmdline" 2>/dev/null | grep -F "$SCRATCH/clusters" || true
  done
  find "$BIMETAL_CLUSTER" -mindepth 1 -not -name '*.lock' 2>/dev/null || true
}

slot_of() { # NAME
  local alias
  for alias in /sys/class/net/bimetal*/ifalias; do
    [ "$(cat "$alias" 2>/dev/null)" = "$BIMETAL_CLUSTER/$1" ] || continue
    alias=${alias%/ifalias}
    echo "${alias##*/bimetal}"
  done
}

finish() {
  local rc=$?
  trap - EXIT INT TERM
  "$TOOL" down --all >&2 || true
  rm -rf "$SCRATCH"
  exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT TERM

# --- cases

bad_input_is_refused_with_a_remedy() {
  fails_with "unknown command 'start'" "$TOOL" start
  fails_with "unknown argument '--node'" cluster up --node 3
  fails_with "--nodes must be a whole number from 1 to 16" cluster up --nodes 0
  fails_with "--nodes needs a value" cluster up --nodes
  fails_with "--hollow must be a whole number" cluster up --hollow many
  fails_with "--vendor must be nvidia, amd or mixed" cluster up --hollow 1 --vendor intel
  fails_with "add --hollow N" cluster up --gpus 4
  fails_with "is no name for a cluster" "$TOOL" up --name '../x'
  fails_with "no cluster '$ME' is up" cluster kubeconfig
  fails_with "no cluster '$ME' is up" cluster status
  fails_with "no archive given" cluster load
}

taking_down_nothing_succeeds() { cluster down; }

up_makes_every_node_ready() {
  cluster up --nodes 2 --hollow 3 --gpus 4 --vendor mixed --audit
  expect "ready nodes" 5 "$(kubectl get nodes --no-headers | grep -cw Ready)"
  cluster status
}

up_again_changes_nothing() {
  local before
  before=$(cat "$(state)"/run/*.pid)
  local start=${EPOCHREALTIME/./}
  cluster up
  local took=$(((${EPOCHREALTIME/./} - start) / 1000))
  expect "processes" "$before" "$(cat "$(state)"/run/*.pid)"
  [ "$took" -lt 5000 ] || { echo "took $took ms"; return 1; }
  fails_with "it cannot shrink" cluster up --nodes 1
}

hollow_nodes_offer_gpus_of_both_vendors() {
  expect nvidia "4  4" "$(kubectl get nodes hollow-0001 hollow-0002 hollow-0003 -o jsonpath='{.items[*].status.allocatable.nvidia\.com/gpu}' | sed 's/ /  /')"
  expect amd 4 "$(kubectl get node hollow-0002 -o jsonpath='{.status.allocatable.amd\.com/gpu}')"
}

hollow_pods_run_for_as_long_as_they_say() {
  kubectl apply -f "$ROOT/tests/cluster/hollow-pods.yaml"
  eventually 20 expect_phases "Failed Running Succeeded"
}

expect_phases() {
  expect phases "$1" "$(kubectl get pods -l hollow=pod --sort-by .metadata.name -o jsonpath='{.items[*].status.phase}')"
}

an_image_is_loaded_and_runs_on_every_node() {
  local archive
  archive=$("$ROOT/dev/images" toolbox | cut -d' ' -f3)
  cluster load "$archive"
  fails_with "no such archive" cluster load /nonexistent.tar
  kubectl apply -f "$ROOT/tests/cluster/pods.yaml"
  kubectl rollout status daemonset/web --timeout=60s
  kubectl wait --for=condition=Ready pod/client --timeout=60s
}

from_client() { kubectl exec client -- timeout 5 "$@"; }

names_resolve_in_pods() {
  eventually 20 from_client wget -qO- http://web/ >/dev/null
  from_client wget -qO- http://web.default.svc.cluster.local/
  # A pod of a gang finds the first one by its name under the headless Service.
  from_client nslookup client.gang.default.svc.cluster.local
  from_client nslookup -type=a kubernetes.default.svc.cluster.local
}

pods_reach_one_another_across_nodes() {
  local address
  for address in $(kubectl get pods -l app=web -o jsonpath='{.items[*].status.podIP}'); do
    from_client wget -qO- "http://$address:8080/"
  done
}

pods_reach_the_api_by_its_service() {
  from_client nc -w 3 kubernetes.default.svc 443 </dev/null
  cluster node node-1 openssl s_client -connect 10.96.0.1:443 -verify_return_error -verify_ip 10.96.0.1 \
    -CAfile "$(state)/pki/ca.crt" </dev/null
}

logs_and_exec_work() {
  kubectl logs client | grep -q "client is up"
  expect "exec" 65532 "$(kubectl exec client -- id -u)"
}

a_token_names_its_node() {
  local token node
  token=$(kubectl exec client -- cat /var/run/secrets/kubernetes.io/serviceaccount/token)
  node=$(kubectl create --raw /apis/authentication.k8s.io/v1/tokenreviews -f - <<EOF |
{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "$token"}}
EOF
    jq -r '.status.user.extra["authentication.kubernetes.io/node-name"][0]')
  expect "node of the token" "$(kubectl get pod client -o jsonpath='{.spec.nodeName}')" "$node"
}

the_host_and_a_node_share_its_files() {
  echo machine >"$(state)/nodes/node-1/bimetal/probe"
  expect "file in the node" machine "$(cluster node node-1 cat /var/lib/bimetal/probe)"
  expect "file in the other node" 1 "$(cluster node node-2 test -e /var/lib/bimetal/probe || echo $?)"
  fails_with "no node 'node-7'" cluster node node-7 true
}

requests_are_audited() { grep -q '"verb":"create"' "$(state)/log/audit.log"; }

objects_survive_a_restart_of_the_api_server() {
  kubectl create configmap kept --from-literal=a=b
  cluster restart apiserver
  kubectl get configmap kept
}

a_dead_part_is_shown_and_mended() {
  local pid
  read -r pid _ <"$(state)/run/node-1-kubelet.pid"
  kill -9 "$pid"
  fails_with "node-1-kubelet         DEAD" cluster status
  cluster up
  cluster status
}

a_node_that_lost_power_comes_back() {
  cluster node node-2 --kill
  cluster up
  eventually 60 kubectl wait --for=condition=Ready node/node-2 --timeout=5s
  eventually 90 kubectl rollout status daemonset/web --timeout=5s
}

two_clusters_live_side_by_side() {
  "$TOOL" up --name "$OTHER" --nodes 1
  expect "nodes of the second" 1 "$("$TOOL" kubectl --name "$OTHER" get nodes --no-headers | grep -cw Ready)"
  expect "nodes of the first" 2 "$(kubectl get nodes -l '!bimetal.dev/hollow' --no-headers | wc -l)"
  slot_of "$OTHER" >>"$SCRATCH/slots"
  "$TOOL" down --name "$OTHER"
  kubectl get --raw /readyz
}

down_leaves_nothing() {
  slot_of "$ME" >>"$SCRATCH/slots"
  cluster down
  SLOTS=$(cat "$SCRATCH/slots")
  eventually 5 leaves_no_trace
}

leaves_no_trace() {
  local left
  left=$(traces)
  [ -z "$left" ] || {
    echo "$left"
    return 1
  }
}

an_interrupted_start_is_taken_down_whole() {
  "$TOOL" up --name "$ME" --nodes 1 &
  local job=$!
  eventually 30 test -s "$BIMETAL_CLUSTER/$ME/run/node-1-keeper.pid"
  kill -9 "$job"
  SLOTS=$(slot_of "$ME")
  cluster down
  eventually 5 leaves_no_trace
}

check "bad input is refused with a remedy" bad_input_is_refused_with_a_remedy
check "taking down nothing succeeds" taking_down_nothing_succeeds
check "up makes every node Ready" up_makes_every_node_ready
check "up again changes nothing" up_again_changes_nothing
check "hollow nodes offer GPUs of both vendors" hollow_nodes_offer_gpus_of_both_vendors
check "hollow pods run for as long as they say" hollow_pods_run_for_as_long_as_they_say
check "an image is loaded and runs on every node" an_image_is_loaded_and_runs_on_every_node
check "names resolve in pods" names_resolve_in_pods
check "pods reach one another across nodes" pods_reach_one_another_across_nodes
check "pods reach the API by its Service" pods_reach_the_api_by_its_service
check "logs and exec work" logs_and_exec_work
check "a token names its node" a_token_names_its_node
check "the host and a node share its files" the_host_and_a_node_share_its_files
check "requests are audited" requests_are_audited
check "objects survive a restart of the API server" objects_survive_a_restart_of_the_api_server
check "a dead part is shown and mended" a_dead_part_is_shown_and_mended
check "a node that lost power comes back" a_node_that_lost_power_comes_back
check "two clusters live side by side" two_clusters_live_side_by_side
check "down leaves nothing" down_leaves_nothing
check "an interrupted start is taken down whole" an_interrupted_start_is_taken_down_whole
exit $FAILED
