"""Gangs: how fast they start, and that nothing of one exists before its plan is whole."""

import collections
import statistics
import sys
import threading
import time

import floors
import kueue
import rig
from api import PodTimes, Watch, say

WAITS = ("WaitingForDevices", "WaitingForTopology", "WaitingForNodeCapacity", "WaitingForQuota", "ExceedsCapacity", "Reserved")


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def start(cluster, times, job, seconds=120):
    """Creates a GPUJob and waits for its pods: (when it was sent, when each pod was bound)."""
    pods = job["spec"]["roles"][0]["replicas"]
    before = set(times.bound)
    began = time.monotonic()
    cluster.api.call("POST", rig.GPU_JOBS, job)
    bound = times.wait(times.bound, len(before) + pods, seconds, "pods are bound")
    return began, {name: when for name, when in bound.items() if name not in before}


def warm_up(cluster, pods, **spec):
    """One gang like those that are measured; leaves nothing."""
    times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
    start(cluster, times, rig.gpu_job("warm", pods, **spec))
    times.stop()
    cluster.clear()
    time.sleep(2)


def pin(pod):
    """The node that a pod is pinned to since it was made; None where it is not."""
    terms = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
    for term in terms:
        for field in term.get("matchFields", []):
            if field["key"] == "metadata.name" and len(field["values"]) == 1:
                return field["values"][0]
    return None


def plan_was_whole(run, cluster, born, pods, devices=1):
    """Every pod was made with its node in it, and together they fit: so all was decided before the first was made."""
    held = collections.Counter()
    for pod in born.values():
        held[pin(pod)] += devices
    full = cluster.total // cluster.nodes
    run.require(len(born) == pods and None not in held and max(held.values()) <= full,
                f"no pod before the plan is whole: {len(born)} of {pods} made, {held[None] // devices} not pinned, at most "
                f"{max(held.values())} devices a node")


def p6(run, runs=3):
    """A gang of 512 pods that prefers few racks: seconds from its create to the last pod bound."""
    nodes = run.size(64, 2)
    pods = nodes * rig.DEVICES_A_NODE
    peer = kueue.gang(run, nodes, pods, runs) if run.peer else None
    with run.cluster.running(nodes, "nvidia") as cluster:
        cluster.label_racks(8)
        floor = min(floors.pinned(cluster, pods) for _ in range(2))
        cluster.install(racks=True)
        cluster.open_fleet()
        where = {"topology": {"level": rig.RACK, "mode": "Preferred"}, "vendors": ["nvidia"]}
        warm_up(cluster, min(pods, 32), **where)
        usage = rig.Usage(cluster)
        took = []
        for i in range(runs):
            times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
            births = PodTimes(cluster.api, rig.NAMESPACE, "made", whole=True)
            began, bound = start(cluster, times, rig.gpu_job(f"gang-{i}", pods, **where))
            took.append(max(bound.values()) - began)
            births.wait(births.made, pods, 30, "pods were seen made")
            say(f"gang {i + 1} of {runs}: first pod made after {min(births.made.values()) - began:.2f} s, first bound "
                f"{min(bound.values()) - began:.2f}, last bound {took[-1]:.2f}")
            plan_was_whole(run, cluster, births.born, pods)
            times.stop()
            births.stop()
            if i == 0:
                writes = usage.tell(pods, "a pod")
            cluster.clear()
            time.sleep(2)
        say(f"operator: {usage.cpu('operator') / runs:.2f} s of CPU a gang, its removal included")
    value = statistics.median(took)
    run.bar(value <= 3, f"{value:.2f} s, <= 3")
    run.note(f"floor {floor:.2f} s writes-a-pod {writes:.1f}")
    if peer:
        run.require(peer / value >= 2.5, f"{peer / value:.1f} times as fast as Kueue with topology ({peer:.2f} s), >= 2.5")
        run.note(f"kueue {peer:.2f} s ratio {peer / value:.1f}")
    return run.finish(f"{value:.2f}", "s", "3")


def one_by_one(cluster, pods, runs):
    """Starts gangs on the idle cluster, each when the one before is gone: milliseconds until all its pods were bound, and
    until the first was made."""
    times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
    births = PodTimes(cluster.api, rig.NAMESPACE, "made")
    took, first = [], []
    for i in range(runs):
        began, bound = start(cluster, times, rig.gpu_job(f"gang-{i:04d}", pods))
        took.append((max(bound.values()) - began) * 1000)
        births.wait(births.made, (i + 1) * pods, 30, "pods were seen made")
        first.append((min(births.made[name] for name in bound) - began) * 1000)
        cluster.api.call("DELETE", f"{rig.GPU_JOBS}/gang-{i:04d}")
        cluster.clear_pods()
        time.sleep(0.5)  # the next one finds the cluster idle
        if (i + 1) % 20 == 0:
            say(f"{i + 1} of {runs} gangs: p50 {statistics.median(took):.0f} ms")
    times.stop()
    births.stop()
    return took, first


def p14(run, pods=8):
    """A gang of 8 on the idle cluster, again and again: milliseconds from its create to the last pod bound."""
    nodes, runs = run.size(5000, 2), run.size(200, 20)
    with run.cluster.running(nodes, "mixed") as cluster:
        floor = floors.gang(cluster, pods)
        cluster.install()
        cluster.open_fleet()
        warm_up(cluster, pods)
        usage = rig.Usage(cluster)
        took, first = one_by_one(cluster, pods, runs)
        writes = usage.tell(runs, "a gang")
    p50, p99 = statistics.median(took), percentile(took, 0.99)
    say(f"first pod made after {statistics.median(first):.0f} ms, last bound p50 {p50:.0f} ms, p90 {percentile(took, 0.9):.0f}, "
        f"p99 {p99:.0f}, most {max(took):.0f}; {writes:.0f} writes a gang, its removal included")
    run.require(p99 <= 250, f"p99 {p99:.0f} ms, <= 250")
    run.require(p50 <= 60, f"p50 {p50:.0f} ms, <= 60")
    run.note(f"p99 {p99:.0f} ms floor {floor:.0f} ms writes-a-gang {writes:.1f}")
    return run.finish(f"{p50:.0f}", "ms", "60")


def rate(run, nodes, pods, devices_a_node, slowest=None):
    """One job of many pods, against bare pods through the stock scheduler in the same run: pods a second."""
    with run.cluster.running(nodes, "nvidia", devices_a_node) as cluster:
        floors.pinned(cluster, pods)
        bare = pods / min(floors.unpinned(cluster, pods) for _ in range(2))
        cluster.install()
        cluster.open_fleet()
        warm_up(cluster, min(pods, 32), vendors=["nvidia"])
        usage = rig.Usage(cluster)
        times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
        births = PodTimes(cluster.api, rig.NAMESPACE, "made")
        began, bound = start(cluster, times, rig.gpu_job("wide", pods, vendors=["nvidia"]), 900)
        births.wait(births.made, pods, 60, "pods were seen made")
        times.stop()
        births.stop()
        took = max(bound.values()) - began
        waits = [when - births.made[name] for name, when in bound.items()]
        since = [when - began for when in bound.values()]
        p99 = percentile(waits, 0.99)
        say(f"{pods} pods in {took:.2f} s; first made after {min(births.made.values()) - began:.2f} s; from made to bound p50 "
            f"{statistics.median(waits):.2f} s, p99 {p99:.2f}; from the job's create to bound p50 {statistics.median(since):.2f} s, "
            f"p99 {percentile(since, 0.99):.2f}")
        writes = usage.tell(pods, "a pod")
    value = pods / took
    run.require(value >= 0.9 * bare, f"{value:.0f} pods/s, >= 0.9 of {bare:.0f} of bare pods")
    if slowest:
        run.require(p99 <= slowest, f"p99 of a pod {p99:.2f} s, <= {slowest}")
    run.note(f"bare {bare:.0f} pods/s p99 {p99:.2f} s writes-a-pod {writes:.1f}")
    return run.finish(f"{value:.0f}", "pods/s", f"{0.9 * bare:.0f}")


def p10(run):
    """One job of 5,000 pods on 5,000 nodes."""
    return rate(run, run.size(5000, 2), run.size(5000, 2), rig.DEVICES_A_NODE)


def p17(run):
    """One job of 1,000 pods on 100 nodes."""
    return rate(run, run.size(100, 2), run.size(1000, 2), 2 * rig.DEVICES_A_NODE, slowest=5)


class Reasons:
    """When each GPUJob was first said to wait, and what was said."""

    def __init__(self, api):
        self.seen, self.status = {}, {}
        self.changed = threading.Condition()
        self.watch = Watch(api, rig.GPU_JOBS, self._event, whole=True)

    def _event(self, kind, job, when):
        status = job.get("status", {})
        if kind == "DELETED" or status.get("reason") not in WAITS:
            return
        with self.changed:
            self.status.setdefault(job["metadata"]["name"], status)
            self.seen.setdefault(job["metadata"]["name"], when)
            self.changed.notify_all()

    def wait(self, name, seconds=30):
        with self.changed:
            if not self.changed.wait_for(lambda: name in self.seen, seconds):
                sys.exit(f"job {name} got no reason within {seconds} s")
        return self.seen[name]


def p7(run):
    """A gang of 10 pods of 8 devices on a full cluster: seconds from its create to the reason why it waits, p99."""
    nodes, probes = run.size(500, 24), run.size(100, 10)
    with run.cluster.running(nodes, "mixed") as cluster:
        cluster.install()
        cluster.open_fleet()
        warm_up(cluster, 8)
        hold = PodTimes(cluster.api, rig.NAMESPACE, "bound")
        # Nine nodes of each vendor are given back for the second half: room for nine of the ten pods.
        for vendor in cluster.vendors:
            small = cluster.total // 2 - 9 * rig.DEVICES_A_NODE
            start(cluster, hold, rig.gpu_job(f"nine-{vendor}", 9, rig.DEVICES_A_NODE, [vendor]))
            for part in range(0, small, 100):
                start(cluster, hold, rig.gpu_job(f"fill-{vendor}-{part}", min(100, small - part), 1, [vendor]))
        hold.stop()
        rig.wait_for("every device is taken", lambda: cluster.free_devices() == 0, 60)
        say(f"{cluster.total} devices are taken by {small * 2 + 18} pods")
        usage = rig.Usage(cluster)
        births = PodTimes(cluster.api, rig.NAMESPACE, "made")
        reasons = Reasons(cluster.api)
        took = []
        for i in range(2 * probes):
            if i == probes:
                for vendor in cluster.vendors:
                    cluster.api.call("DELETE", f"{rig.GPU_JOBS}/nine-{vendor}")
                rig.wait_for("nine nodes of each vendor are free",
                             lambda: cluster.free_devices() == 18 * rig.DEVICES_A_NODE, 60)
            name = f"probe-{i:04d}"
            began = time.monotonic()
            cluster.api.call("POST", rig.GPU_JOBS, rig.gpu_job(name, 10, rig.DEVICES_A_NODE))
            took.append(reasons.wait(name) - began)
            cluster.api.call("DELETE", f"{rig.GPU_JOBS}/{name}")
            time.sleep(0.1)
        time.sleep(2)
        births.stop()
        reasons.watch.stop()
        writes = usage.tell(2 * probes)
    say(f"the first was told: {reasons.status['probe-0000'].get('reason')}: {reasons.status['probe-0000'].get('message')}")
    told = [s for name, s in reasons.status.items() if name.startswith("probe")]
    whole = sum(1 for status in told if len(status.get("blockers", [])) == 2 and all(
        blocker.get("need") == 80 and blocker.get("unblockedBy") for blocker in status["blockers"]))
    run.require(whole == len(told) == 2 * probes,
                f"{whole} of {len(told)} reasons say for both vendors what is needed and what would help")
    made = sum(1 for name in births.made if name.startswith("probe"))
    run.require(made == 0, f"{made} pods of gangs that cannot fit were made")
    p99 = percentile(took, 0.99)
    say(f"p50 {statistics.median(took) * 1000:.0f} ms, most {max(took) * 1000:.0f} ms")
    run.require(p99 <= 1, f"p99 {p99:.3f} s, <= 1")
    run.note(f"p50 {statistics.median(took):.3f} s writes-a-job {writes:.1f}")
    return run.finish(f"{p99:.3f}", "s", "1")
