"""The cluster of hollow nodes that a live bench runs on, and what the run cost it: processor time, memory, API writes."""

import collections
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from api import Api, say

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMESPACE = "bench"
SYSTEM = "bimetal-system"
DEVICES_A_NODE = 8
RACK = "bimetal.dev/rack"
TOLD_TO_END = 130  # our exit status then
TICKS = os.sysconf("SC_CLK_TCK")

# What goes on without any job, or prepares the fleet: leases, heartbeats, tokens and reports of nodes.
BACKGROUND = ("leases", "nodes", "nodes/status", "tokenreviews", "subjectaccessreviews", "serviceaccounts/token",
              "gpunodes", "gpunodes/status")


def end_on_signal():
    """Signals end the program as errors do, so that what was started is taken down."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(TOLD_TO_END))


def wait_for(what, probe, seconds, pause=0.2, state=lambda: ""):
    deadline = time.monotonic() + seconds
    while True:
        seen = probe()
        if seen:
            return seen
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s\n{state()}")
        time.sleep(pause)


class Cluster:
    """A local cluster of one real node, where the operator runs, and hollow nodes; also a context that takes it down."""

    def __init__(self, name, binaries, logs):
        self.name, self.binaries, self.logs = name, pathlib.Path(binaries), pathlib.Path(logs)
        self.agents = None
        self.state = pathlib.Path(self._dev("path", quiet=True).strip())
        self.kubeconfig = str(self.state / "admin.kubeconfig")
        self.audit = self.state / "log" / "audit.log"
        self.api = None
        self.nodes = 0

    def _dev(self, command, *args, quiet=False):
        """dev/cluster; its words go on to stderr, `quiet` returns what it prints."""
        done = subprocess.run([str(ROOT / "dev" / "cluster"), command, "--name", self.name, *args], text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE if quiet else sys.stderr)
        if done.returncode != 0:
            sys.exit(f"dev/cluster {command}: exit status {done.returncode}")
        return done.stdout or ""

    @contextlib.contextmanager
    def running(self, nodes, vendor, devices=DEVICES_A_NODE):
        """A fresh cluster with `nodes` hollow nodes."""
        self._dev("down")
        try:
            self._dev("up", "--nodes", "1", "--hollow", str(nodes), "--gpus", str(devices), "--vendor", vendor, "--audit")
            self.api = Api(self.kubeconfig)
            self.slot = int(self.api.host.split(".")[2])  # dev/cluster numbers its networks, and its control groups alike
            self.nodes = nodes
            self.total = nodes * devices
            self.vendors = ["nvidia", "amd"] if vendor == "mixed" else [vendor]
            self.kubectl("create", "namespace", NAMESPACE)
            account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
            wait_for("the namespace's service account",
                     lambda: self.api.get(account, allow=(404,))["kind"] == "ServiceAccount", 60)
            yield self
        finally:
            self.stop_agents()
            self._keep_logs()
            self._dev("down")

    def _keep_logs(self):
        """The logs of the last cluster of each bench, the audit log among them, stay until the next."""
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            (self.state / "log").rename(self.logs)
            with open(self.logs / "operator.log", "w", encoding="utf-8") as log:
                for previous in ("--previous", "--previous=false"):
                    subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, "-n", SYSTEM, "logs", "-l",
                                    "app.kubernetes.io/component=operator", "--tail=-1", previous], stdout=log, stderr=log, timeout=60,
                                   check=False)

    def kubectl(self, *args, stdin=None):
        done = subprocess.run(["kubectl", "--kubeconfig", self.kubeconfig, *args], input=stdin, capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"kubectl {' '.join(args)}: {done.stderr[-2000:]}")
        return done.stdout

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", stdin="\n---\n".join(json.dumps(o) for o in objects))

    def hollow_node(self, index):
        """The name and vendor of the hollow node `index`, counted from 0: as dev/cluster makes them."""
        return f"hollow-{index + 1:04d}", self.vendors[index % len(self.vendors)]

    def label_racks(self, nodes_a_rack):
        """Gives every hollow node a rack of its vendor."""
        each = len(self.vendors) * nodes_a_rack
        self.api.each([("PATCH", f"/api/v1/nodes/{self.hollow_node(i)[0]}", json.dumps(
            {"metadata": {"labels": {RACK: f"{self.hollow_node(i)[1]}-{i // each}"}}}).encode(),
            "application/merge-patch+json") for i in range(self.nodes)])

    def install(self, *helm, racks=False, max_runs=64):
        """The operator and the agents of the hollow nodes, through whose reports every node is admitted."""
        # Anew for each cluster: an archive goes when another tree builds its own. What is unchanged is not built again.
        images = subprocess.run([str(ROOT / "dev" / "images"), "operator", "agent"], text=True, check=False,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        if images.returncode != 0:
            sys.exit("the images could not be built")
        self._dev("load", *(line.split()[2] for line in images.stdout.splitlines()))
        here = 'kubernetes\\.io/hostname'
        # A share of the processor like the other parts of the control plane have, which run outside of any pod.
        done = subprocess.run(
            ["helm", "--kubeconfig", self.kubeconfig, "install", "bimetal", str(ROOT / "charts" / "bimetal"),
             "--namespace", SYSTEM, "--create-namespace", "--set", "image.tag=dev", "--set", "simulation.enabled=true",
             "--set", "defaults.pools=false", "--set", "operator.resources.requests.cpu=1",
             "--set", f"operator.nodeSelector.{here}=node-1", "--set", f"agent.nodeSelector.{here}=node-1", *helm,
             "--wait", "--timeout", "3m"], stdout=sys.stderr, check=False)
        if done.returncode != 0:
            sys.exit("the chart could not be installed")
        self.profile(max_runs)
        for vendor in self.vendors:
            self.apply({"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUPool", "metadata": {"name": vendor},
                        "spec": {"vendor": vendor, "gate": "Enforce", "validationProfileName": "bench",
                                 "topologyKeys": [RACK] if racks else []}})

    def profile(self, max_runs, **breakers):
        """The ValidationProfile of the benches' pools. Runs of hollow nodes end at once, so many may be under way."""
        self.apply({"apiVersion": "bimetal.dev/v1alpha1", "kind": "ValidationProfile", "metadata": {"name": "bench"},
                    "spec": {"pathCheck": "Skip", "breakers": {"maxRuns": max_runs, **breakers}}})

    def start_agents(self, *args):
        address = self.kubectl("-n", SYSTEM, "get", "pods", "-l", "app.kubernetes.io/component=operator", "-o",
                               "jsonpath={.items[0].status.podIP}")
        with open(self.state / "log" / "hollow-agents.log", "w", encoding="utf-8") as log:
            # Its messages must not end ours: it gets a session of its own, and is ended by its id.
            self.agents = subprocess.Popen(
                [str(self.binaries / "bimetal-hollow"), "--kubeconfig", self.kubeconfig, "--operator", f"{address}:9443", *args],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def stop_agents(self):
        if self.agents is not None:
            self.agents.terminate()
            self.agents.wait()
            self.agents = None

    def free_devices(self):
        return sum(int(n or 0) for n in
                   self.kubectl("get", "gpupools", "-o", "jsonpath={.items[*].status.devices.free}").split())

    def open_fleet(self):
        """Starts the agents and waits until every device of every hollow node may take jobs."""
        begin = time.monotonic()
        self.start_agents()
        self.all_free(120 + self.nodes)
        say(f"{self.nodes} nodes admitted in {time.monotonic() - begin:.0f} s")

    def all_free(self, seconds=180):
        wait_for("every device is free", lambda: self.free_devices() == self.total, seconds, 0.5,
                 lambda: self.kubectl("get", "gpupools"))

    def clear(self, seconds=600):
        """No job and no pod is left, and the operator knows it."""
        group = f"/apis/bimetal.dev/v1alpha1/namespaces/{NAMESPACE}/gpujobs"
        if self.api.get(group + "?limit=1", allow=(404,)).get("items"):
            self.api.call("DELETE", group)
        wait_for("no job is left", lambda: not self.api.get(group + "?limit=1")["items"], seconds)
        self.clear_pods(seconds)
        self.all_free()

    def clear_pods(self, seconds=600):
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        wait_for("no pod is left", lambda: not self.api.get(path + "?limit=1")["items"], seconds)

    def drop_pods(self):
        """Removes bare pods at once."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        self.api.call("DELETE", path + "?gracePeriodSeconds=0")
        self.clear_pods()

    # --- what a run cost

    def operator_pid(self):
        return self._pid_in_cluster("(bimetal-operato)") or sys.exit("no operator runs in this cluster")

    def _pid_in_cluster(self, name):
        """The youngest process of that name in this cluster's control groups: other clusters have operators, too."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
                if name in stat and f"/bimetal-{self.slot}/" in pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8"):
                    found.append((int(stat.rsplit(")", 1)[1].split()[19]), int(pid)))
        return max(found)[1] if found else None

    def control_group(self):
        """The file that takes the id of a process that shall go with the cluster (cgroup v1, or the single tree of v2)."""
        tree = pathlib.Path("/sys/fs/cgroup")
        pids = tree if (tree / "cgroup.controllers").exists() else tree / "pids"
        return str(pids / f"bimetal-{self.slot}" / "control" / "cgroup.procs")

    def pids(self, *others):
        """The processes whose cost is told, by name."""
        out = {}
        for name in ("apiserver", "etcd", "scheduler", "controller-manager", "kwok", *others):
            with contextlib.suppress(OSError):
                out[name] = int((self.state / "run" / f"{name}.pid").read_text(encoding="utf-8").split()[0])
        operator = self._pid_in_cluster("(bimetal-operato)")
        if operator:
            out["operator"] = operator
        return out


class Usage:
    """What the processes of a cluster used, and what they wrote, from now on."""

    def __init__(self, cluster, *others):
        self.cluster = cluster
        self.pids = cluster.pids(*others)
        for pid in self.pids.values():
            with contextlib.suppress(OSError):
                pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="utf-8")  # the peak begins anew
        self.start = {name: cpu_seconds(pid) for name, pid in self.pids.items()}
        self.offset = cluster.audit.stat().st_size
        self.busy = machine_seconds()
        self.began = time.monotonic()

    def cpu(self, name):
        """What a process used; one that has ended, and was started again or not, ends the bench: its figure is no figure."""
        try:
            return cpu_seconds(self.pids[name]) - self.start[name]
        except OSError:
            sys.exit(f"{name} has ended during the run; its log is in {self.cluster.logs}")

    def peak_mib(self, name):
        return peak_memory_mib(self.pids[name])

    def writes(self):
        return writes_since(self.cluster.audit, self.offset)

    def tell(self, units, unit="a job"):
        """Prints what was used, and returns the writes for each of `units`."""
        took = time.monotonic() - self.began
        used = {name: self.cpu(name) for name in self.pids}
        busy = machine_seconds() - self.busy
        say("CPU seconds: " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in used.items()) +
            f", all of the machine {busy:.1f} in {took:.1f} s")
        for name in ("operator", "kueue"):
            if name in self.pids:
                say(f"{name}: {used[name]:.1f} s of CPU, {self.peak_mib(name)} MiB at most")
        counts = self.writes()
        for key, count in sorted(counts.items(), key=lambda item: -item[1]):
            if count / units >= 0.005:
                say(f"{count / units:6.2f} {unit}: {key[0]} {key[1]}")
        return sum(counts.values()) / units


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def machine_seconds():
    """CPU time of everything on this host, the idle time left out."""
    with open("/proc/stat", encoding="utf-8") as stat:
        fields = [int(n) for n in stat.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


def peak_memory_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


def writes_since(audit, offset):
    """Writes of all clients by (verb, resource) after a byte offset of the audit log; the background left out."""
    counts = collections.Counter()
    with open(audit, "rb") as log:
        log.seek(offset)
        for line in log:
            if b'"ResponseComplete"' not in line or not line.endswith(b"\n"):
                continue
            event = json.loads(line)
            ref = event.get("objectRef") or {}
            resource = ref.get("resource", "") + ("/" + ref["subresource"] if "subresource" in ref else "")
            if event["verb"] in ("create", "update", "patch", "delete", "deletecollection") and resource not in BACKGROUND:
                counts[event["verb"], resource] += 1
    return counts


def pinned_pod(cluster, index, count=1):
    """A bare pod that asks for `count` devices of the hollow node `index`: pinned as the operator pins its own."""
    node, vendor = cluster.hollow_node(index % cluster.nodes)
    pod = bare_pod(vendor, f"bare-{index:05d}", count)
    pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}
    return pod


def bare_pod(vendor, name, count=1, run=None):
    """A pod that the stock scheduler places by itself."""
    annotations = {"bimetal.dev/hollow-run": run} if run else {}
    devices = {f"{vendor}.com/gpu": str(count)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations},
            "spec": {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [
                {"name": "main", "image": "hollow", "resources": {"requests": devices, "limits": devices}}]}}


def gpu_job(name, pods=1, devices=1, vendors=("nvidia", "amd"), run=None, topology=None, **spec):
    """A GPUJob of one role with a variant for each vendor; its pods run until they are deleted, or for `run`."""
    role = {"name": "worker", "replicas": pods}
    if topology:
        role["topology"] = topology
    if run:
        role["template"] = {"metadata": {"annotations": {"bimetal.dev/hollow-run": run}}}
    return {"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUJob", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"variants": [{"name": v, "vendor": v, "image": "hollow", "devicesPerPod": devices} for v in vendors],
                     "roles": [role], **spec}}


GPU_JOBS = f"/apis/bimetal.dev/v1alpha1/namespaces/{NAMESPACE}/gpujobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
