"""What the API server and the stock scheduler do by themselves: bare pods, without any job. Beside each figure of ours."""

import statistics
import time

import rig
from api import PodTimes, say


def last_bound(cluster, pods, seconds=600):
    """Creates the pods over many connections: seconds from the first create to the last bound."""
    times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
    began = cluster.api.create_all([(rig.PODS, pod) for pod in pods])
    bound = times.wait(times.bound, len(pods), seconds, "bare pods are bound")
    times.stop()
    cluster.drop_pods()
    return max(bound.values()) - began


def pinned(cluster, count, devices=1):
    took = last_bound(cluster, [rig.pinned_pod(cluster, i, devices) for i in range(count)])
    say(f"floor: {count} bare pinned pods bound in {took:.2f} s, {count / took:.0f} a second")
    return took


def unpinned(cluster, count, devices=1):
    vendors = cluster.vendors
    took = last_bound(cluster, [rig.bare_pod(vendors[i % len(vendors)], f"bare-{i:05d}", devices) for i in range(count)])
    say(f"bare pods through the stock scheduler: {count} bound in {took:.2f} s, {count / took:.0f} a second")
    return took


def gang(cluster, pods, runs=20):
    """Milliseconds of a few pinned pods on the idle cluster, median."""
    took = []
    times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
    for i in range(runs):
        made = []
        for k in range(pods):
            pod = rig.pinned_pod(cluster, k)
            pod["metadata"]["name"] = f"bare-{i}-{k}"
            made.append((rig.PODS, pod))
        began = cluster.api.create_all(made, pods)
        bound = times.wait(times.bound, (i + 1) * pods, 60, "bare pods are bound")
        took.append((max(bound.values()) - began) * 1000)
        cluster.drop_pods()
        time.sleep(0.2)
    times.stop()
    say(f"floor: {pods} bare pinned pods bound in {statistics.median(took):.0f} ms (median of {runs}), most {max(took):.0f}")
    return statistics.median(took)


def drain(cluster, count, run):
    """Bare pods that each run for `run` on fewer devices than pods: seconds to the last end, share of device time in use."""
    vendors = cluster.vendors
    times = PodTimes(cluster.api, rig.NAMESPACE, "running")
    began = cluster.api.create_all(
        [(rig.PODS, rig.bare_pod(vendors[i % len(vendors)], f"bare-{i:05d}", run=run)) for i in range(count)])
    times.wait(times.ended, count, 900, "bare pods have run")
    took, busy = occupancy(times, began, cluster.total)
    times.stop()
    say(f"no queue at all: {count} bare pods of {run} drained in {took:.1f} s, {busy:.0%} busy")
    cluster.drop_pods()
    return took


def occupancy(times, began, devices):
    """Seconds from `began` to the end of the last pod, and the share of device time in which pods of one device ran."""
    last = max(times.ended.values())
    ran = sum(end - times.running[name] for name, end in times.ended.items())
    return last - began, ran / (devices * (last - began))
