# shellcheck shell=bash
# What a cluster needs inside the API: rights of the components, and name resolution.

addons_apply() {
  kc apply --server-side -f - >/dev/null <<EOF
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bimetal:apiserver-kubelet-client}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:kubelet-api-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kube-apiserver-kubelet-client}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bimetal:coredns}
rules:
- {apiGroups: [""], resources: [services, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bimetal:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bimetal:coredns}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bimetal:coredns}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bimetal:kwok}
rules:
- {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch, patch, update, delete]}
- {apiGroups: [""], resources: [nodes/status, pods/status], verbs: [get, patch, update]}
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, patch, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bimetal:kwok}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bimetal:kwok}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bimetal:kwok}]
---
# CoreDNS runs beside the control plane; a Service without a selector leads to it.
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: $SERVICE_DNS_IP
  ports:
  - {name: dns, protocol: UDP, port: 53, targetPort: 10053}
  - {name: dns-tcp, protocol: TCP, port: 53, targetPort: 10053}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {kubernetes.io/service-name: kube-dns, endpointslice.kubernetes.io/managed-by: bimetal-cluster}
addressType: IPv4
endpoints:
- addresses: [$HOST_IP]
  conditions: {ready: true}
ports:
- {name: dns, protocol: UDP, port: 10053}
- {name: dns-tcp, protocol: TCP, port: 10053}
EOF
}

coredns_ensure() {
  cat >"$STATE/config/Corefile" <<EOF
.:10053 {
  bind $HOST_IP
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $STATE/coredns.kubeconfig
    ttl 5
  }
  cache 5 {
    denial 1000 1
  }
}
EOF
  proc_ensure coredns "$CGROUP/control" coredns -conf "$STATE/config/Corefile"
}
