"""The first benches: a burst and a gang on a small cluster, quick enough to be run after every change."""

import statistics

import bursts
import gangs
import rig
from api import PodTimes, say

NODES = 64


def first(run):
    """200 one-device jobs that take either vendor, on 64 nodes: seconds from the first create to the last pod bound."""
    jobs = run.size(200)
    with run.cluster.running(NODES, "mixed") as cluster:
        cluster.install()
        cluster.open_fleet()
        usage = rig.Usage(cluster)
        times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
        began = cluster.api.create_all([(rig.GPU_JOBS, rig.gpu_job(f"job-{i:03d}", run="2s")) for i in range(jobs)])
        bound = times.wait(times.bound, jobs, 120, "pods are bound")
        took = max(bound.values()) - began
        bursts.all_done(cluster, jobs)
        times.stop()
        writes = usage.tell(jobs)
    run.note(f"writes-a-job {writes:.1f}")
    return run.finish(f"{took:.1f}", "s", "-")


def first_gang(run, runs=20):
    """One gang of 4 pods on the idle cluster: milliseconds from its create to the last pod bound, median of 20."""
    with run.cluster.running(NODES, "mixed") as cluster:
        cluster.install()
        cluster.open_fleet()
        took, _ = gangs.one_by_one(cluster, 4, runs)
    value = statistics.median(took)
    say(f"p90 {gangs.percentile(took, 0.9):.0f} ms")
    run.bar(value <= 200, f"{value:.0f} ms, <= 200")
    return run.finish(f"{value:.0f}", "ms", "200")
