# shellcheck shell=bash
# Hollow nodes: Node objects whose kubelet is played by one kwok process, for tests of scale.
# $STATE/hollow holds "COUNT GPUS VENDOR".

hollow_count() {
  local count=0
  [ ! -f "$STATE/hollow" ] || read -r count _ <"$STATE/hollow"
  printf '%s' "$count"
}

# Each node renews its lease four times in this many seconds: 5,000 of them must not eat the API
# server. A real node that vanishes is noticed 10 s after the same time.
hollow_lease_seconds() {
  local count
  count=$(hollow_count)
  if [ "$count" -le 100 ]; then echo 40; elif [ "$count" -le 1000 ]; then echo 240; else echo 1200; fi
}

hollow_name() { printf 'hollow-%04d' "$1"; }

hollow_node() { # INDEX GPUS VENDOR -> one Node as YAML
  local name vendor=$3
  name=$(hollow_name "$1")
  if [ "$vendor" = mixed ]; then
    if [ $(($1 % 2)) -eq 1 ]; then vendor=nvidia; else vendor=amd; fi
  fi
  local capacity="{cpu: \"64\", memory: 512Gi, ephemeral-storage: 1Ti, pods: \"110\", $vendor.com/gpu: \"$2\"}"
  cat <<EOF
---
apiVersion: v1
kind: Node
metadata:
  name: $name
  annotations: {kwok.x-k8s.io/node: fake}
  labels:
    kubernetes.io/hostname: $name
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    bimetal.dev/hollow: "true"
    $vendor.com/gpu.present: "true"
status:
  capacity: $capacity
  allocatable: $capacity
  nodeInfo: {kubeletVersion: kwok, operatingSystem: linux, architecture: amd64, bootID: "", containerRuntimeVersion: "",
    kernelVersion: "", kubeProxyVersion: "", machineID: "", osImage: "", systemUUID: ""}
EOF
}

# kwok's own stages; but a Job's pod that says how long it runs does not end at once.
hollow_stages() {
  awk '{print}
    /^  name: / {job_pods = $2 == "pod-complete"}
    job_pods && /^ *matchExpressions:$/ {
      print "    - {key: \047.metadata.annotations[\"bimetal.dev/hollow-run\"]\047, operator: DoesNotExist}"
    }' "$(dirname "$(command -v kwok)")/stages.yaml"
}

hollow_ensure() {
  local count gpus vendor have index
  [ -f "$STATE/hollow" ] || return 0
  read -r count gpus vendor <"$STATE/hollow"
  hollow_stages >"$STATE/config/stages.yaml"
  proc_ensure kwok "$CGROUP/control" kwok --kubeconfig "$STATE/kwok.kubeconfig" \
    --config "$STATE/config/stages.yaml" --config "$BM_LIB/cluster/stages.yaml" --manage-all-nodes=false \
    --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake \
    --node-lease-duration-seconds "$(hollow_lease_seconds)" --server-address "127.0.0.1:$((21100 + SLOT))"
  have=$(kc get nodes -l bimetal.dev/hollow=true -o name | wc -l)
  [ "$have" -ne "$count" ] || return 0
  say "hollow nodes: $have -> $count"
  if [ "$have" -gt "$count" ]; then
    for ((index = count + 1; index <= have; index++)); do hollow_name "$index"; echo; done |
      xargs -n 50 -P 8 "$KUBECTL" --kubeconfig "$STATE/admin.kubeconfig" delete node --wait=false >/dev/null
    return
  fi
  hollow_create "$have" "$count" "$gpus" "$vendor"
}

# Four clients at once: one is held to 50 requests a second.
hollow_create() { # HAVE COUNT GPUS VENDOR
  local part index jobs=() job
  for part in 0 1 2 3; do
    for ((index = $1 + 1 + part; index <= $2; index += 4)); do hollow_node "$index" "$3" "$4"; done \
      >"$STATE/config/hollow-$part.yaml"
    [ -s "$STATE/config/hollow-$part.yaml" ] || continue
    kc create --validate=false -f "$STATE/config/hollow-$part.yaml" >/dev/null &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do wait "$job" || die "some hollow nodes were not created" "try the same command again"; done
}

hollow_wait() {
  local count
  count=$(hollow_count)
  [ "$count" -eq 0 ] || wait_until $((60 + count / 20)) "$count Ready hollow nodes" kwok hollow_all_ready "$count"
}

hollow_all_ready() {
  sleep 0.3 # each look reads them all
  [ "$(kc get nodes -l bimetal.dev/hollow=true --no-headers 2>/dev/null | awk '$2 == "Ready"' | wc -l)" -eq "$1" ]
}
