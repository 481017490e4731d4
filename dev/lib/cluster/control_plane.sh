# shellcheck shell=bash
# etcd, API server, controller manager, scheduler.

pki_control_plane() {
  pki_authority
  pki_issue apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,\
DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$SERVICE_API_IP,IP:$HOST_IP"
  pki_issue kubelet-client /CN=kube-apiserver-kubelet-client
  pki_client admin /O=system:masters/CN=bimetal-admin
  pki_client controller-manager /CN=system:kube-controller-manager
  pki_client scheduler /CN=system:kube-scheduler
  pki_client kube-proxy /CN=system:kube-proxy
  pki_client coredns /CN=bimetal:coredns
  pki_client kwok /CN=bimetal:kwok
}

etcd_ensure() {
  local client=http://127.0.0.1:$((21000 + SLOT * 2)) peer=http://127.0.0.1:$((21001 + SLOT * 2))
  # The data of a test cluster need not survive a power cut: no fsync.
  proc_ensure etcd "$CGROUP/control" etcd --data-dir "$STATE/etcd" --unsafe-no-fsync \
    --listen-client-urls "$client" --advertise-client-urls "$client" --listen-peer-urls "$peer" \
    --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
    --quota-backend-bytes 4294967296 --log-level warn
}

apiserver_ensure() {
  local audit=()
  if [ -f "$STATE/audit" ]; then
    cat >"$STATE/config/audit.yaml" <<EOF
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
EOF
    audit=(--audit-policy-file "$STATE/config/audit.yaml" --audit-log-path "$STATE/log/audit.log"
      --audit-log-maxsize 1000 --audit-log-mode batch)
  fi
  proc_ensure apiserver "$CGROUP/control" kube-apiserver \
    --etcd-servers "http://127.0.0.1:$((21000 + SLOT * 2))" \
    --bind-address "$HOST_IP" --advertise-address "$HOST_IP" --secure-port 6443 \
    --tls-cert-file "$STATE/pki/apiserver.crt" --tls-private-key-file "$STATE/pki/apiserver.key" \
    --client-ca-file "$STATE/pki/ca.crt" \
    --service-account-issuer https://kubernetes.default.svc.cluster.local \
    --service-account-key-file "$STATE/pki/sa.pub" --service-account-signing-key-file "$STATE/pki/sa.key" \
    --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --anonymous-auth=false \
    --kubelet-certificate-authority "$STATE/pki/ca.crt" \
    --kubelet-client-certificate "$STATE/pki/kubelet-client.crt" \
    --kubelet-client-key "$STATE/pki/kubelet-client.key" \
    --kubelet-preferred-address-types InternalIP --enable-aggregator-routing \
    --service-cluster-ip-range 10.96.0.0/16 --allow-privileged \
    --max-requests-inflight 1500 --max-mutating-requests-inflight 1000 \
    --shutdown-watch-termination-grace-period 1s "${audit[@]}"
}

apiserver_wait() { wait_until 90 "answer from the API server" apiserver kc get --raw /readyz; }

# Both managers run alone: no leader election, whose lease writes would only load the API server.
managers_ensure() {
  local grace
  grace=$(($(hollow_lease_seconds) + 10))
  proc_ensure controller-manager "$CGROUP/control" kube-controller-manager \
    --kubeconfig "$STATE/controller-manager.kubeconfig" --leader-elect=false --secure-port 0 \
    --service-account-private-key-file "$STATE/pki/sa.key" --root-ca-file "$STATE/pki/ca.crt" \
    --use-service-account-credentials --cluster-signing-cert-file "$STATE/pki/ca.crt" \
    --cluster-signing-key-file "$STATE/pki/ca.key" --kube-api-qps 1000 --kube-api-burst 2000 \
    --concurrent-job-syncs 20 --node-monitor-grace-period "${grace}s"
  cat >"$STATE/config/scheduler.yaml" <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection:
  kubeconfig: $STATE/scheduler.kubeconfig
  qps: 1000  # the default, 50 requests a second, would cap every test
  burst: 2000
EOF
  proc_ensure scheduler "$CGROUP/control" kube-scheduler --config "$STATE/config/scheduler.yaml" --secure-port 0
}
