# shellcheck shell=bash
# One node: a network namespace, a mount namespace, a containerd, a kubelet and a kube-proxy.
#
# The keeper process holds the mount namespace: the folders that programs of a node expect at fixed
# paths (the kubelet's device-plugin folder is a constant) are bind mounts of nodes/NAME/... there.

# nodes/NAME/FOLDER is mounted at PATH.
NODE_MOUNTS="
kubelet:/var/lib/kubelet
containerd:/var/lib/containerd
run-containerd:/run/containerd
cni-state:/var/lib/cni
cni-config:/etc/cni/net.d
pods:/var/log/pods
containers:/var/log/containers
bimetal:/var/lib/bimetal
run-bimetal:/run/bimetal
run-netns:/run/netns
"

node_dir() { printf '%s/nodes/node-%s' "$STATE" "$1"; }

node_config() { # INDEX
  local node=node-$1 dir mount snapshotter=overlayfs
  dir=$(node_dir "$1")
  for mount in $NODE_MOUNTS; do mkdir -p "$dir/${mount%%:*}"; done
  overlay_works "$dir" || snapshotter=native
  pki_client "$node" "/O=system:nodes/CN=system:node:$node"
  pki_issue "$node-serving" "/CN=$node" "DNS:$node,IP:$(node_ip "$1")"
  printf 'options ndots:5\n' >"$dir/resolv.conf"
  printf 'bimetal-%s-%s' "$SLOT" "$node" | md5sum | cut -d' ' -f1 >"$dir/machine-id"
  cat >"$dir/cni-config/10-pods.conflist" <<EOF
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam":
    {"type": "host-local", "ranges": [[{"subnet": "$(node_pod_cidr "$1")"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}},
  {"type": "loopback"}]}
EOF
  cat >"$dir/containerd.toml" <<EOF
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.erofs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'io.containerd.metadata.v1.bolt']
  no_sync = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "$snapshotter"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "$PAUSE_IMAGE"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true  # without CAP_SYS_RESOURCE runc cannot lower oom_score_adj
  enable_cdi = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/usr/lib/cni"]
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
EOF
  cat >"$dir/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP/$node/pods
enforceNodeAllocatable: []
failSwapOn: false
readOnlyPort: 0
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: $STATE/pki/ca.crt}, webhook: {enabled: true}}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/$node-serving.crt
tlsPrivateKeyFile: $STATE/pki/$node-serving.key
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
clusterDNS: ["$SERVICE_DNS_IP"]
clusterDomain: cluster.local
resolvConf: $dir/resolv.conf
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 50Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
kubeAPIQPS: 200
kubeAPIBurst: 400
registryPullQPS: 0
EOF
  cat >"$dir/proxy.yaml" <<EOF
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clientConnection: {kubeconfig: $STATE/kube-proxy.kubeconfig}
hostnameOverride: $node
clusterCIDR: 10.$((128 + SLOT)).0.0/16
# Its sysctls are read-only in a network namespace.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 100ms}
EOF
}

overlay_works() { # FOLDER
  [ -z "${BM_OVERLAY:-}" ] || return "$BM_OVERLAY"
  mkdir -p "$1/overlay-test"/{lower,upper,work,merged}
  BM_OVERLAY=0
  unshare -m mount -t overlay overlay "$1/overlay-test/merged" -o \
    "lowerdir=$1/overlay-test/lower,upperdir=$1/overlay-test/upper,workdir=$1/overlay-test/work" 2>/dev/null || BM_OVERLAY=1
  rm -rf "$1/overlay-test"
  return "$BM_OVERLAY"
}

# The keeper makes the mounts, says so with a file, and sleeps. Everything else of the node enters
# its namespaces. The kubelet's folder is shared, so that volume mounts reach the containers' view.
node_keeper_ensure() { # INDEX
  local node=node-$1 dir mount script
  proc_alive "$node-keeper" && return
  dir=$(node_dir "$1")
  node_stop "$1"
  script='set -e; mount --make-rprivate /;'
  for mount in $NODE_MOUNTS; do
    script+=$(printf ' mkdir -p %q; mount --bind %q %q;' "${mount#*:}" "$dir/${mount%%:*}" "${mount#*:}")
  done
  script+=' mount --make-rshared /var/lib/kubelet;'
  script+=$(printf ' [ ! -f /etc/machine-id ] || mount --bind %q /etc/machine-id;' "$dir/machine-id")
  script+=$(printf ' touch %q; exec sleep infinity' "$dir/mounted")
  rm -rf "$dir/mounted" "$dir"/run-containerd/* "$dir"/run-netns/* "$dir"/cni-state/*
  # nsenter, not `ip netns exec`, which would mount a fresh /sys that hides the control groups.
  proc_start "$node-keeper" "$CGROUP/$node/system" \
    nsenter --net="/run/netns/$(node_netns "$1")" unshare --mount bash -c "$script"
}

node_enter() { # INDEX -> the words that run a command inside the node, in NODE_ENTER
  local pid
  pid=$(proc_pid "node-$1-keeper") || die "node-$1 is not running" "dev/cluster up --name $NAME"
  NODE_ENTER=(nsenter --target "$pid" --mount --net --)
}

node_containerd_ensure() { # INDEX
  local node=node-$1 dir
  dir=$(node_dir "$1")
  wait_until 30 "mount namespace of $node" "$node-keeper" test -f "$dir/mounted"
  node_enter "$1"
  proc_ensure "$node-containerd" "$CGROUP/$node/system" "${NODE_ENTER[@]}" containerd --log-level warn --config "$dir/containerd.toml"
}

node_ctr() { # INDEX ARGUMENT...
  node_enter "$1"
  "${NODE_ENTER[@]}" ctr -n k8s.io "${@:2}"
}

node_containerd_wait() { # INDEX
  wait_until 60 "containerd on node-$1" "node-$1-containerd" node_ctr "$1" version
  [ -f "$(node_dir "$1")/paused" ] || {
    node_ctr "$1" images import --local "$PAUSE_ARCHIVE" >"$STATE/log/load-$1.log" 2>&1
    touch "$(node_dir "$1")/paused"
  }
}

node_kubelet_ensure() { # INDEX
  local node=node-$1 dir
  dir=$(node_dir "$1")
  node_enter "$1"
  proc_ensure "$node-kubelet" "$CGROUP/$node/system" "${NODE_ENTER[@]}" kubelet --config "$dir/kubelet.yaml" \
    --kubeconfig "$STATE/$node.kubeconfig" --hostname-override "$node" --node-ip "$(node_ip "$1")"
  proc_ensure "$node-proxy" "$CGROUP/$node/system" "${NODE_ENTER[@]}" kube-proxy --config "$dir/proxy.yaml"
}

# Ends everything of a node whose keeper has died, containers included.
node_stop() { # INDEX
  cgroup_kill "$CGROUP/node-$1"
  rm -f "$STATE/run/node-$1"-*.pid
}
