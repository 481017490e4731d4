"""Many small jobs at once, over two vendors."""

import floors
import kueue
import rig
from api import PodTimes, say


def all_done(cluster, count, seconds=600):
    """Until so many GPUJobs are Completed; not timed, so it may look again and again."""
    rig.wait_for("all jobs are done", lambda: sum(
        1 for job in cluster.api.get(rig.GPU_JOBS)["items"] if job.get("status", {}).get("state") == "Completed") >= count,
        seconds, 2)


def warm_up(cluster, jobs=40):
    """The same on a small scale, so that caches are filled and connections are open; leaves nothing."""
    cluster.api.create_all([(rig.GPU_JOBS, rig.gpu_job(f"warm-{i:03d}", run="1s")) for i in range(jobs)])
    all_done(cluster, jobs)
    cluster.clear()


def p5(run):
    """4,000 one-device jobs that take either vendor, on 500 nodes: seconds to the last bound pod."""
    nodes, jobs = run.size(500, 2), run.size(4000)
    peer = kueue.burst(run, nodes, jobs) if run.peer else None
    with run.cluster.running(nodes, "mixed") as cluster:
        floor = floors.pinned(cluster, jobs)
        cluster.install()
        cluster.open_fleet()
        warm_up(cluster)
        usage = rig.Usage(cluster)
        times = PodTimes(cluster.api, rig.NAMESPACE, "bound", "running")
        began = cluster.api.create_all([(rig.GPU_JOBS, rig.gpu_job(f"job-{i:05d}", run="1s")) for i in range(jobs)])
        bound = times.wait(times.bound, jobs, 600, "pods are bound")
        took = max(bound.values()) - began
        say(f"last of {jobs} pods bound after {took:.1f} s; operator {usage.cpu('operator'):.1f} s of CPU until then")
        times.wait(times.ended, jobs, 600, "pods have ended")
        all_done(cluster, jobs)
        times.stop()
        writes = usage.tell(jobs)
    run.require(writes <= 10, f"{writes:.1f} writes a job, <= 10")
    run.bar(took <= 60, f"{took:.1f} s, <= 60")
    run.note(f"floor {floor:.1f} s writes-a-job {writes:.1f}")
    if peer:
        run.require(peer / took >= 3, f"{peer / took:.1f} times as fast as Kueue ({peer:.1f} s), >= 3")
        run.note(f"kueue {peer:.1f} s ratio {peer / took:.1f}")
    return run.finish(f"{took:.1f}", "s", "60")


def p18(run):
    """2,000 jobs of 2 s over 200 devices of both vendors: seconds until the last has ended."""
    nodes, jobs = run.size(25, 2), run.size(2000)
    peer = kueue.drain(run, nodes, jobs) if run.peer else None
    with run.cluster.running(nodes, "mixed") as cluster:
        floor = floors.drain(cluster, jobs, "2s")
        cluster.install()
        cluster.open_fleet()
        warm_up(cluster)
        usage = rig.Usage(cluster)
        times = PodTimes(cluster.api, rig.NAMESPACE, "running")
        began = cluster.api.create_all([(rig.GPU_JOBS, rig.gpu_job(f"job-{i:05d}", run="2s")) for i in range(jobs)])
        times.wait(times.ended, jobs, 900, "pods have ended")
        took, busy = floors.occupancy(times, began, cluster.total)
        say(f"{jobs} jobs drained in {took:.1f} s, {busy:.0%} busy")
        all_done(cluster, jobs)
        times.stop()
        writes = usage.tell(jobs)
    run.bar(took <= 36, f"{took:.1f} s, <= 36")
    run.bar(busy >= 0.52, f"{busy:.0%} busy, >= 52 %")
    run.note(f"busy {busy:.0%} floor {floor:.1f} s writes-a-job {writes:.1f}")
    if peer:
        run.note(f"kueue {peer:.1f} s ratio {peer / took:.1f}")
    return run.finish(f"{took:.1f}", "s", "36")
