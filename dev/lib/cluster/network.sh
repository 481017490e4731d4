# shellcheck shell=bash
# One bridge a cluster; one network namespace a node, with an address on the bridge.
#
# Clusters share the host by slot numbers: slot S has the bridge bimetalS, the nodes' addresses
# 172.30.S.0/24 and the pods' 10.(128+S).0.0/16. Making the bridge takes the slot (the kernel lets
# only one succeed), and the bridge's alias says whose it is.

NET_SLOTS=32

slot_of_state() { # STATE -> its slot, when it has one
  local alias
  for alias in /sys/class/net/bimetal*/ifalias; do
    [ -f "$alias" ] && [ "$(<"$alias")" = "$1" ] || continue
    alias=${alias%/ifalias}
    printf '%s' "${alias##*/bimetal}"
    return
  done
  return 1
}

slot_take() {
  local slot
  for ((slot = 0; slot < NET_SLOTS; slot++)); do
    [ -z "$(ip -4 route show root "172.30.$slot.0/24")$(ip -4 route show root "10.$((128 + slot)).0.0/16")" ] || continue
    ip link add "bimetal$slot" type bridge 2>/dev/null || continue
    ip link set "bimetal$slot" alias "$STATE"
    printf '%s' "$slot"
    return
  done
  die "no free network for one more cluster: 172.30.0.0/24 to 172.30.$((NET_SLOTS - 1)).0/24 are all in use" \
    "take down a cluster that is no longer needed: dev/cluster down --name NAME"
}

network_up() {
  ip addr replace "$HOST_IP/24" dev "$BRIDGE"
  ip link set "$BRIDGE" up
  # Where a firewall of the host drops forwarded frames (Docker's does), ours must pass.
  iptables -w -C FORWARD -i "$BRIDGE" -o "$BRIDGE" -j ACCEPT 2>/dev/null ||
    iptables -w -I FORWARD -i "$BRIDGE" -o "$BRIDGE" -j ACCEPT
}

network_down() { # SLOT
  local link
  while iptables -w -D FORWARD -i "bimetal$1" -o "bimetal$1" -j ACCEPT 2>/dev/null; do :; done
  for link in /sys/class/net/bimetal"$1"/brif/*; do
    [ -e "$link" ] && ip link del "${link##*/}"
  done
  ! ip link show "bimetal$1" >/dev/null 2>&1 || ip link del "bimetal$1"
}

node_ip() { printf '172.30.%s.%s' "$SLOT" "$((10 + $1))"; }       # INDEX
node_netns() { printf 'bimetal%s-node-%s' "$SLOT" "$1"; }          # INDEX
node_pod_cidr() { printf '10.%s.%s.0/24' "$((128 + SLOT))" "$1"; } # INDEX

node_network_up() { # INDEX
  local netns veth
  netns=$(node_netns "$1")
  veth=bm$SLOT-n$1
  [ -e "/run/netns/$netns" ] || ip netns add "$netns"
  if ! ip link show "$veth" >/dev/null 2>&1; then
    ip link add "$veth" type veth peer name eth0 netns "$netns"
  fi
  ip link set "$veth" master "$BRIDGE" up
  ip -n "$netns" addr replace "$(node_ip "$1")/24" dev eth0
  ip -n "$netns" link set lo up
  ip -n "$netns" link set eth0 up
  ip -n "$netns" route replace default via "$HOST_IP"
  nsenter --net="/run/netns/$netns" sysctl -qw net.ipv4.ip_forward=1
}

# Pods reach one another over the bridge alone; the host forwards nothing, but reaches pods itself.
routes_up() { # NODES
  local from to
  for ((to = 1; to <= $1; to++)); do
    ip route replace "$(node_pod_cidr "$to")" via "$(node_ip "$to")" dev "$BRIDGE"
    for ((from = 1; from <= $1; from++)); do
      [ "$from" -eq "$to" ] ||
        ip -n "$(node_netns "$from")" route replace "$(node_pod_cidr "$to")" via "$(node_ip "$to")"
    done
  done
}

node_network_down() { # SLOT INDEX
  ip link del "bm$1-n$2" 2>/dev/null || true
  ip netns del "bimetal$1-node-$2" 2>/dev/null || true
}
