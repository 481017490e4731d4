"""Kueue on the same kind of cluster, driven in the same way: what our figures are held against.

It runs beside the control plane with raised client limits and without webhooks, so that it is seen at its best. Each job
names its vendor, half of them each: a ResourceFlavor changes no resource name and no image, so a Kueue job cannot take either.
"""

import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request

import floors
import rig
from api import PodTimes, say

JOBS = f"/apis/batch/v1/namespaces/{rig.NAMESPACE}/jobs"
QUEUES = "kueue.x-k8s.io/v1beta2"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"

CONFIGURATION = """apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {{healthProbeBindAddress: "127.0.0.1:{health}"}}
metrics: {{bindAddress: "127.0.0.1:{metrics}"}}
webhook: {{port: {webhook}, certDir: {serving}}}
leaderElection: {{leaderElect: false}}
internalCertManagement: {{enable: false}}
featureGates: {{VisibilityOnDemand: false}}
controller:
  groupKindConcurrency: {{Job.batch: 5, Pod: 5, Workload.kueue.x-k8s.io: 5, LocalQueue.kueue.x-k8s.io: 4,
    Cohort.kueue.x-k8s.io: 1, ClusterQueue.kueue.x-k8s.io: 4, ResourceFlavor.kueue.x-k8s.io: 1}}
clientConnection: {{qps: 1000, burst: 2000}}
integrations: {{frameworks: ["batch/job"]}}
"""

# Kueue reads the certificate of its metrics from a fixed path below /etc: it gets an /etc of its own. In the cluster's
# control group it goes with the cluster, whatever becomes of us.
START = """set -eu
echo $$ >"$1"
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$2/upper,workdir=$2/work" /etc
mkdir -p /etc/kueue/metrics
cp -r "$3" /etc/kueue/metrics/certs
exec "$4" --kubeconfig "$5" --config "$6"
"""


def established(crd):
    return any(c["type"] == "Established" and c["status"] == "True" for c in crd.get("status", {}).get("conditions") or [])


def start(cluster):
    """Kueue, ready to admit jobs."""
    programs = os.environ.get("BIMETAL_PEER") or sys.exit("BIMETAL_PEER does not name Kueue's folder; dev/bench --peer kueue does")
    cluster.kubectl("create", "-f", f"{programs}/crds")
    rig.wait_for("Kueue's kinds are known", lambda: all(established(crd) for crd in cluster.api.get(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]), 60)
    cluster.kubectl("create", "namespace", "kueue-system")
    folder = cluster.state / "kueue"
    (folder / "etc").mkdir(parents=True)
    (folder / "serving").mkdir()
    for end in ("crt", "key"):
        (folder / "serving" / f"tls.{end}").write_bytes((cluster.state / "pki" / f"apiserver.{end}").read_bytes())
    health = 21300 + 3 * cluster.slot
    (folder / "config.yaml").write_text(CONFIGURATION.format(
        health=health, metrics=health + 1, webhook=health + 2, serving=folder / "serving"), encoding="utf-8")
    with open(cluster.state / "log" / "kueue.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "bash", "-c", START, "kueue", cluster.control_group(),
             str(folder / "etc"), str(folder / "serving"), f"{programs}/kueue", cluster.kubeconfig, str(folder / "config.yaml")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    (cluster.state / "run" / "kueue.pid").write_text(f"{process.pid}\n", encoding="utf-8")

    def ready():
        if process.poll() is not None:
            sys.exit("Kueue has ended:\n" + (cluster.state / "log" / "kueue.log").read_text(encoding="utf-8")[-3000:])
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"http://127.0.0.1:{health}/readyz", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False

    rig.wait_for("Kueue is ready", ready, 60)


def queue(cluster, racks=False):
    """A queue with a quota of all devices there are, a flavor for each vendor."""
    objects, groups = [], []
    if racks:
        objects.append({"apiVersion": QUEUES, "kind": "Topology", "metadata": {"name": "racks"},
                        "spec": {"levels": [{"nodeLabel": rig.RACK}, {"nodeLabel": "kubernetes.io/hostname"}]}})
    for k, vendor in enumerate(cluster.vendors):
        devices = sum(1 for i in range(cluster.nodes) if i % len(cluster.vendors) == k) * cluster.total // cluster.nodes
        objects.append({"apiVersion": QUEUES, "kind": "ResourceFlavor", "metadata": {"name": vendor},
                        "spec": {"nodeLabels": {f"{vendor}.com/gpu.present": "true"},
                                 **({"topologyName": "racks"} if racks else {})}})
        groups.append({"coveredResources": [f"{vendor}.com/gpu"], "flavors": [
            {"name": vendor, "resources": [{"name": f"{vendor}.com/gpu", "nominalQuota": devices}]}]})
    objects.append({"apiVersion": QUEUES, "kind": "ClusterQueue", "metadata": {"name": "all"},
                    "spec": {"namespaceSelector": {}, "resourceGroups": groups}})
    objects.append({"apiVersion": QUEUES, "kind": "LocalQueue", "metadata": {"name": "all", "namespace": rig.NAMESPACE},
                    "spec": {"clusterQueue": "all"}})
    cluster.apply(*objects)
    cluster.kubectl("wait", "--for=condition=Active", "--timeout=60s", "clusterqueue/all")
    cluster.kubectl("-n", rig.NAMESPACE, "wait", "--for=condition=Active", "--timeout=60s", "localqueue/all")


def job(name, vendor, pods=1, run=None, racks=False):
    annotations = {"bimetal.dev/hollow-run": run or "24h"}  # without it a Job's hollow pods end at once
    if racks:
        annotations[PREFERRED] = rig.RACK
    template = rig.bare_pod(vendor, "")
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": rig.NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": "all"}},
            "spec": {"suspend": True, "parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 0,
                     "template": {"metadata": {"annotations": annotations}, "spec": template["spec"]}}}


def clear(cluster):
    cluster.api.call("DELETE", f"{JOBS}?propagationPolicy=Background")
    rig.wait_for("no job is left", lambda: not cluster.api.get(JOBS + "?limit=1")["items"], 300)
    cluster.clear_pods()
    rig.wait_for("no workload is left", lambda: not cluster.api.get(
        f"/apis/{QUEUES}/namespaces/{rig.NAMESPACE}/workloads?limit=1")["items"], 300)
    time.sleep(2)


def many(cluster, count, run, prefix="job"):
    vendors = cluster.vendors
    return [(JOBS, job(f"{prefix}-{i:05d}", vendors[i % len(vendors)], run=run)) for i in range(count)]


def warm_up(cluster, requests):
    times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
    cluster.api.create_all(requests)
    times.wait(times.bound, sum(body["spec"]["parallelism"] for _, body in requests), 120, "pods of the warm-up are bound")
    times.stop()
    clear(cluster)


def burst(run, nodes, jobs):
    """As p5: seconds to the last bound pod."""
    with run.cluster.running(nodes, "mixed") as cluster:
        start(cluster)
        queue(cluster)
        warm_up(cluster, many(cluster, 40, "1s", "warm"))
        usage = rig.Usage(cluster, "kueue")
        times = PodTimes(cluster.api, rig.NAMESPACE, "bound", "running")
        began = cluster.api.create_all(many(cluster, jobs, "1s"))
        bound = times.wait(times.bound, jobs, 1200, "pods of Kueue are bound")
        took = max(bound.values()) - began
        times.wait(times.ended, jobs, 600, "pods of Kueue have ended")
        time.sleep(5)  # the last status of the last jobs
        times.stop()
        writes = usage.tell(jobs)
        say(f"Kueue: last of {jobs} pods bound after {took:.1f} s, {writes:.1f} writes a job")
        return took


def drain(run, nodes, jobs):
    """As p18: seconds until the last job's pod has ended."""
    with run.cluster.running(nodes, "mixed") as cluster:
        start(cluster)
        queue(cluster)
        warm_up(cluster, many(cluster, 40, "1s", "warm"))
        usage = rig.Usage(cluster, "kueue")
        times = PodTimes(cluster.api, rig.NAMESPACE, "running")
        began = cluster.api.create_all(many(cluster, jobs, "2s"))
        times.wait(times.ended, jobs, 1800, "pods of Kueue have ended")
        took, busy = floors.occupancy(times, began, cluster.total)
        times.stop()
        writes = usage.tell(jobs)
        say(f"Kueue: {jobs} jobs drained in {took:.1f} s, {busy:.0%} busy, {writes:.1f} writes a job")
        return took


def gang(run, nodes, pods, runs):
    """As p6, with Kueue's topology-aware scheduling: seconds to the last bound pod, median."""
    with run.cluster.running(nodes, "nvidia") as cluster:
        cluster.label_racks(8)
        start(cluster)
        queue(cluster, racks=True)
        warm_up(cluster, [(JOBS, job("warm", "nvidia", min(pods, 32), racks=True))])
        took = []
        for i in range(runs):
            times = PodTimes(cluster.api, rig.NAMESPACE, "bound")
            began = time.monotonic()
            cluster.api.call("POST", JOBS, job(f"gang-{i}", "nvidia", pods, racks=True))
            bound = times.wait(times.bound, pods, 120, "pods of Kueue are bound")
            took.append(max(bound.values()) - began)
            times.stop()
            clear(cluster)
        say("Kueue with topology: " + ", ".join(f"{t:.2f}" for t in took) + " s")
        return statistics.median(took)
