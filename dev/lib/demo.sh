# shellcheck shell=bash
# The steps of dev/demo. Source it after env.sh, do not run it.

DEMO=demo
NAMESPACE=bimetal-system
JOBS_NAMESPACE=demo

# Which machine each node of the local cluster simulates. One of the four has a stuck bit in its memory.
demo_machine() {
  case $1 in
    node-1 | node-2) echo nvidia-h100-8 ;;
    node-3) echo amd-mi300x-8 ;;
    node-4) echo amd-mi300x-8-memory-fault ;;
  esac
}

local_cluster() {
  local node state name reference archive size archives=()
  "$BM_ROOT/dev/setup"
  "$BM_ROOT/dev/build" --no-setup bimetal-operator bimetal-agent bimetal-validate bimetal-workload bimetal-machine
  "$BM_ROOT/dev/images" >"$BM_CACHE/log/demo-images.txt"
  "$BM_ROOT/dev/cluster" up --name "$DEMO" --nodes 4
  state=$("$BM_ROOT/dev/cluster" path --name "$DEMO")
  for node in node-1 node-2 node-3 node-4; do
    [ -e "$state/nodes/$node/bimetal/machine/simulated" ] ||
      "$BM_ROOT/build/release/bin/bimetal-machine" build "$BM_ROOT/tests/machines/$(demo_machine "$node").yaml" \
        "$state/nodes/$node/bimetal/machine" --node "$node" >&2
  done
  while read -r name reference archive size; do
    say "image $name: $size MB unpacked ($reference)"
    archives+=("$archive")
  done <"$BM_CACHE/log/demo-images.txt"
  "$BM_ROOT/dev/cluster" load --name "$DEMO" "${archives[@]}"
}

install_chart() { # REGISTRY TAG SIMULATED
  local plugin=Vendor
  [ "$3" = false ] || plugin=Bimetal
  say "installing the chart with Helm ..."
  helm upgrade --install bimetal "$BM_ROOT/charts/bimetal" --namespace "$NAMESPACE" --create-namespace \
    --set image.registry="$1" --set image.tag="$2" --set simulation.enabled="$3" \
    --set defaults.devicePlugin="$plugin" --set defaults.priceBook=example \
    --set defaults.validationProfile=whole-nodes --wait --timeout 3m >&2
  kubectl apply -f "$BM_ROOT/manifests/samples/validationprofile-whole-nodes.yaml" >&2
  # An image that was built again has the same name: have the pods made anew.
  if [ "$3" = true ]; then
    kubectl -n "$NAMESPACE" rollout restart deployment/bimetal-operator daemonset/bimetal-agent >/dev/null
    kubectl -n "$NAMESPACE" rollout status deployment/bimetal-operator --timeout=2m >/dev/null
    kubectl -n "$NAMESPACE" rollout status daemonset/bimetal-agent --timeout=2m >/dev/null
  fi
}

phases() { kubectl get gpunodes -o jsonpath='{range .items[*]}{.status.phase}{"\n"}{end}' 2>/dev/null | sort | uniq -c | xargs; }

# wait_until SECONDS WHAT COMMAND...: prints what it sees each time it changes.
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2 seen="" now
  shift 2
  until "$@"; do
    now=$(phases)
    [ "$now" = "$seen" ] || say "  nodes: ${now:-none yet}"
    seen=$now
    [ $SECONDS -lt "$deadline" ] || {
      kubectl get gpunodes,gpujobs -A >&2 || true
      die "$what did not happen in time" "see: kubectl describe gpunodes; kubectl -n $NAMESPACE logs deployment/bimetal-operator"
    }
    sleep 0.5
  done
}

nodes_settled() {
  local admitted quarantined
  admitted=$(kubectl get gpunodes -o jsonpath='{.items[?(@.status.phase=="Admitted")].metadata.name}' 2>/dev/null | wc -w)
  quarantined=$(kubectl get gpunodes -o jsonpath='{.items[?(@.status.phase=="Quarantined")].metadata.name}' 2>/dev/null | wc -w)
  [ "$admitted" -eq 3 ] && [ "$quarantined" -eq 1 ] && [ "$(offered nvidia.com/gpu)" -eq 16 ] && [ "$(offered amd.com/gpu)" -eq 8 ]
}

# Devices of a resource that the kubelets offer to pods.
offered() {
  kubectl get nodes -o json | jq --arg r "$1" '[.items[].status.allocatable[$r] // "0" | tonumber] | add'
}

some_gpu_node() { [ -n "$(kubectl get gpunodes -o name 2>/dev/null)" ]; }
some_node_admitted() { kubectl get gpunodes -o jsonpath='{.items[*].status.phase}' 2>/dev/null | grep -q Admitted; }

# On a cluster of the user's own nothing is simulated: without a GPU there is nothing to show.
wait_for_gpus() {
  local deadline=$((SECONDS + 60))
  until some_gpu_node; do
    [ $SECONDS -lt "$deadline" ] ||
      die "no agent reports a GPU after 60 s: this cluster has no node whose GPUs it can see, and none are simulated here" \
        "see: kubectl -n $NAMESPACE get pods -o wide; on a GPU node: bimetal doctor. The chart stays installed until: helm uninstall bimetal -n $NAMESPACE"
    sleep 0.5
  done
}

wait_for_nodes() { # SIMULATED
  say "proving the nodes with native kernels ..."
  if [ "$1" = true ]; then
    wait_until 180 "three admitted nodes and one in quarantine" nodes_settled
  else
    wait_for_gpus
    wait_until 600 "an admitted node" some_node_admitted
  fi
  say "  nodes: $(phases)"
}

job_field() { kubectl -n "$JOBS_NAMESPACE" get gpujob "$1" -o jsonpath="{.status.$2}" 2>/dev/null; }
job_is() { [ "$(job_field "$1" "$2")" = "$3" ]; }
jobs_done() { job_is two-vendors state Completed && job_is waits state Completed && job_is amd-only state Completed; }

run_jobs() { # REGISTRY TAG SIMULATED
  local sample
  kubectl create namespace "$JOBS_NAMESPACE" --dry-run=client -o yaml | kubectl apply -f - >/dev/null
  kubectl apply -f "$BM_ROOT/manifests/samples/pricebook-example.yaml" >&2
  kubectl -n "$JOBS_NAMESPACE" delete gpujob two-vendors waits amd-only never-fits --ignore-not-found --wait >/dev/null
  for sample in two-vendors waits amd-only never-fits; do
    sed "s#localhost/bimetal-workload:dev#$1/bimetal-workload:$2#" "$BM_ROOT/manifests/samples/gpujob-$sample.yaml" |
      kubectl -n "$JOBS_NAMESPACE" apply -f - >&2
    [ "$sample" != two-vendors ] || wait_until 60 "the first job's placement" job_is two-vendors attempt 1
  done
  wait_until 30 "a reason on the job that can never fit" job_is never-fits reason ExceedsCapacity
  if [ "$3" = true ]; then
    wait_until 30 "a reason on the job that waits" job_is waits reason WaitingForDevices
    say ""
    say "while the first job runs:"
    kubectl -n "$JOBS_NAMESPACE" get gpujobs >&2
    say "  waits:      $(job_field waits message)"
    say "  never-fits: $(job_field never-fits message)"
    say ""
    wait_until 180 "the end of the jobs" jobs_done
  else
    say "the jobs are submitted; follow them with: kubectl -n $JOBS_NAMESPACE get gpujobs -w"
  fi
}

show_result() { # SIMULATED
  local pod node
  printf '\nNODES (devices are simulated: %s)\n' "$1"
  kubectl get gpunodes
  for node in $(kubectl get gpunodes -o jsonpath='{.items[?(@.status.phase=="Quarantined")].metadata.name}'); do
    printf '%s: %s\n' "$node" "$(kubectl get gpunode "$node" -o jsonpath='{.status.message}')"
  done
  printf '\nJOBS AND THEIR COST\n'
  kubectl -n "$JOBS_NAMESPACE" get gpujobs -o custom-columns='NAME:.metadata.name,STATE:.status.state,REASON:.status.reason,VARIANT:.status.assignment.variant,POOL:.status.assignment.pool,DEVICES:.status.assignment.devices,DEVICE-SECONDS:.status.usage.deviceSeconds,COST:.status.usage.cost'
  printf '\nTHE GANG (each pod added up one value of every other over the network)\n'
  for pod in $(kubectl -n "$JOBS_NAMESPACE" get pods -l bimetal.dev/job=two-vendors -o name); do
    printf '%s: %s\n' "${pod#pod/}" "$(kubectl -n "$JOBS_NAMESPACE" logs "$pod" --tail=1)"
  done
  printf '\nMETRICS (the same, summed from the operator'"'"'s /metrics)\n'
  kubectl get --raw "/api/v1/namespaces/$NAMESPACE/services/bimetal-operator-metrics:http-metrics/proxy/metrics" |
    awk -F'[{}]' '/^bimetal_job_(gpu_seconds|cost)_total/ {
      match($2, /job_name="[^"]*"/); job = substr($2, RSTART + 10, RLENGTH - 11)
      if ($1 ~ /cost/) cost[job] += $3; else seconds[job] += $3
    } END { for (job in seconds) printf "%s: %.3f device-seconds, %.9f\n", job, seconds[job], cost[job] }' | sort
}
