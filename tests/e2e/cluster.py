"""The cluster of the end-to-end tests: kubectl and Helm on it, its nodes' machines, and waiting."""

import json
import os
import pathlib
import subprocess
import sys
import time

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "chart"))

from harness import CHART, Skip, run, tool  # noqa: E402,F401

SYSTEM = "bimetal-system"
TEAM = "team"
MACHINES = {"node-1": "nvidia-h100-8", "node-2": "nvidia-h100-8", "node-3": "amd-mi300x-8",
            "node-4": "amd-mi300x-8-memory-fault"}
BINARIES = pathlib.Path(os.environ.get("BIMETAL_BINARY_DIR", ROOT / "build" / "release")) / "bin"
NAME = os.environ.get("BIMETAL_TEST_CLUSTER", "")
KUBECONFIG = os.environ.get("BIMETAL_TEST_KUBECONFIG", "")
DEV_CLUSTER = ROOT / "dev" / "cluster"


def need_cluster():
    if not NAME or not KUBECONFIG:
        raise Skip("no cluster: BIMETAL_TEST_CLUSTER and BIMETAL_TEST_KUBECONFIG are not set; dev/test sets them")


def kubectl(*args, stdin=None, check=True):
    return run(tool("kubectl"), "--kubeconfig", KUBECONFIG, *args, stdin=stdin, check=check)


def get(*args):
    """An object or a list as Python values; None where it does not exist."""
    done = kubectl("get", *args, "-o", "json", check=False)
    if done.returncode != 0:
        if "NotFound" in done.stderr or "not found" in done.stderr:
            return None
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


def apply(*objects, check=True):
    return kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects), check=check)


def create(*objects, check=True):
    return kubectl("create", "-f", "-", stdin=yaml.safe_dump_all(objects), check=check)


def wait_for(what, probe, seconds=60):
    """Asks until `probe` gives something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        seen = probe()
        if seen:
            return seen
        if time.monotonic() > deadline:
            state = kubectl("get", "gpunodes,gpujobs,pods", "-A", check=False).stdout
            raise AssertionError(f"{what}: not within {seconds} s\n{state}")
        time.sleep(0.1)


def state_folder():
    return pathlib.Path(run(DEV_CLUSTER, "path", "--name", NAME).stdout.strip())


def machine_folder(node):
    return state_folder() / "nodes" / node / "bimetal" / "machine"


def build_machines(machines=None):
    """Gives every node its simulated machine, anew."""
    for node, description in (machines or MACHINES).items():
        folder = machine_folder(node)
        folder.mkdir(parents=True, exist_ok=True)  # kept: agents have it mounted
        subprocess.run(["find", folder, "-mindepth", "1", "-delete"], check=True)
        run(BINARIES / "bimetal-machine", "build", ROOT / "tests" / "machines" / f"{description}.yaml",
            folder, "--node", node)


def install(*extra, check=True, chart=CHART):
    return run(tool("helm"), "--kubeconfig", KUBECONFIG, "upgrade", "--install", "bimetal", chart,
               "--namespace", SYSTEM, "--create-namespace", "--set", "image.tag=dev", "--set",
               "simulation.enabled=true", "--set", "defaults.devicePlugin=Bimetal", "--set",
               "defaults.priceBook=example", "--set", "jobs.nodeLostAfter=15s", "--wait", "--timeout", "3m", *extra, check=check)


def uninstall():
    return run(tool("helm"), "--kubeconfig", KUBECONFIG, "uninstall", "bimetal", "-n", SYSTEM, "--wait")


def phase(node):
    found = get("gpunode", node)
    return found.get("status", {}).get("phase", "") if found else ""


def offered(node, vendor):
    """Devices that the kubelet offers to pods on a node."""
    return int(get("node", node)["status"]["allocatable"].get(f"{vendor}.com/gpu", "0"))


def wait_for_fleet():
    """Three admitted nodes, one with a device in quarantine, and the kubelets offer what that means."""
    want = {node: "Quarantined" if "fault" in machine else "Admitted" for node, machine in MACHINES.items()}
    wait_for("the fleet is proven", lambda: {n: phase(n) for n in MACHINES} == want, 120)
    for node, machine in MACHINES.items():
        vendor = machine.split("-")[0]
        want_devices = 7 if "fault" in machine else 8
        wait_for(f"{node} offers {want_devices}", lambda n=node, v=vendor, w=want_devices: offered(n, v) == w)


def status(name, namespace=TEAM):
    found = get("gpujob", name, "-n", namespace)
    return (found or {}).get("status", {})


def wait_state(name, state, seconds=60, namespace=TEAM):
    return wait_for(f"job {name} is {state}",
                    lambda: (lambda s: s if s.get("state") == state else None)(status(name, namespace)), seconds)


def wait_reason(name, reason, seconds=60, namespace=TEAM):
    return wait_for(f"job {name} says {reason}",
                    lambda: (lambda s: s if s.get("reason") == reason else None)(status(name, namespace)), seconds)


def pods_of(job, namespace=TEAM):
    return get("pods", "-n", namespace, "-l", f"bimetal.dev/job={job}")["items"]


def variant(vendor, devices, command, image="localhost/bimetal-workload:dev"):
    return {"name": "cuda" if vendor == "nvidia" else "rocm", "vendor": vendor, "devicesPerPod": devices,
            "image": image, "command": ["bimetal-workload", *command]}


def job(name, pods=1, devices=1, vendors=("nvidia", "amd"), command=("sleep", "--seconds", "1"),
        namespace=TEAM, template=None, **spec):
    """A GPUJob of one role with a variant for each vendor."""
    role = {"name": "worker", "replicas": pods}
    if template:
        role["template"] = template
    return {"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUJob",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"variants": [variant(v, devices, list(command)) for v in vendors], "roles": [role], **spec}}


def delete_jobs(namespace=TEAM):
    kubectl("delete", "gpujobs", "--all", "-n", namespace, "--wait")
    wait_for("no job pod is left", lambda: not [p for p in get("pods", "-n", namespace)["items"]], 90)


def fresh_namespace(name=TEAM):
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def metrics():
    """The operator's /metrics through the API server's proxy."""
    path = f"/api/v1/namespaces/{SYSTEM}/services/bimetal-operator-metrics:http-metrics/proxy/metrics"
    return kubectl("get", "--raw", path).stdout
