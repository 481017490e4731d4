#!/usr/bin/env python3
"""The first benches, on the cluster of KUBECONFIG with hollow nodes; dev/bench runs it."""

import argparse
import collections
import json
import statistics
import subprocess
import sys
import threading
import time

NAMESPACE = "bench"


def kubectl(*args, stdin=None):
    done = subprocess.run(["kubectl", *args], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kubectl {' '.join(args)}: {done.stderr}")
    return done.stdout


def wait_for(what, probe, seconds):
    deadline = time.monotonic() + seconds
    while not probe():
        if time.monotonic() > deadline:
            sys.exit(f"{what}: not within {seconds} s\n" + kubectl("get", "gpupools"))
        time.sleep(0.2)


class BoundPods(threading.Thread):
    """Notes when each pod of the namespace is seen bound to a node."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = {}
        self.process = subprocess.Popen(
            ["kubectl", "get", "pods", "-n", NAMESPACE, "-w", "--no-headers", "-o",
             "custom-columns=N:.metadata.name,H:.spec.nodeName"], stdout=subprocess.PIPE, text=True)
        self.start()

    def run(self):
        for line in self.process.stdout:
            name, node = line.split()
            if node != "<none>":
                self.seen.setdefault(name, time.monotonic())

    def wait(self, count, seconds):
        wait_for(f"{count} bound pods", lambda: len(self.seen) >= count, seconds)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def job(name, pods, run="2s"):
    def variant(vendor):
        return {"name": vendor, "vendor": vendor, "image": "hollow", "devicesPerPod": 1}
    return {"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUJob",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"variants": [variant("nvidia"), variant("amd")],
                     "roles": [{"name": "worker", "replicas": pods, "template": {
                         "metadata": {"annotations": {"bimetal.dev/hollow-run": run}}}}]}}


def states():
    return collections.Counter(kubectl("get", "gpujobs", "-n", NAMESPACE, "-o",
                                       "jsonpath={range .items[*]}{.status.state}{'\\n'}{end}").split())


def clear():
    kubectl("delete", "gpujobs", "--all", "-n", NAMESPACE, "--wait")
    wait_for("no pod is left", lambda: not kubectl("get", "pods", "-n", NAMESPACE, "-o", "name"), 120)


def writes_since(audit, start):
    """Writes by (verb, resource) after a byte offset of the audit log; leases and heartbeats left out."""
    counts = collections.Counter()
    with open(audit, encoding="utf-8") as log:
        log.seek(start)
        for line in log:
            event = json.loads(line)
            ref = event.get("objectRef") or {}
            resource = ref.get("resource", "") + ("/" + ref["subresource"] if "subresource" in ref else "")
            if event.get("stage") != "ResponseComplete" or event["verb"] not in ("create", "update", "patch", "delete"):
                continue
            if resource in ("leases", "nodes/status", "tokenreviews", "subjectaccessreviews", "nodes") or \
                    ref.get("resource", "").startswith("gpu") and ref.get("resource") != "gpujobs":
                continue
            counts[event["verb"], resource] += 1
    return counts


def bench_first(audit, jobs=200):
    start = len(open(audit, "rb").read())
    pods = BoundPods()
    text = "\n---\n".join(json.dumps(job(f"job-{i:03d}", 1)) for i in range(jobs))
    began = time.monotonic()
    create = subprocess.Popen(["kubectl", "create", "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    create.communicate(text)
    pods.wait(jobs, 120)
    took = max(pods.seen.values()) - began
    wait_for("all jobs are done", lambda: states()["Completed"] == jobs, 120)
    pods.stop()
    counts = writes_since(audit, start)
    for key, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"  {count / jobs:6.2f} a job: {key[0]} {key[1]}", file=sys.stderr)
    print(f"first {took:.1f} s writes-a-job {sum(counts.values()) / jobs:.1f}", flush=True)
    clear()


def bench_gang(runs=20):
    times = []
    for i in range(runs):
        pods = BoundPods()
        time.sleep(1)  # the watch is up, the cluster idle
        began = time.monotonic()
        create = subprocess.Popen(["kubectl", "create", "-f", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        create.communicate(json.dumps(job(f"gang-{i:02d}", 4, "1s")))
        created = time.monotonic()
        pods.wait(4, 30)
        # kubectl's own start is not ours: from the end of its create, which is after the object exists.
        times.append((max(max(pods.seen.values()) - created, 0), max(pods.seen.values()) - began))
        pods.stop()
        clear()
    ours = sorted(t[0] * 1000 for t in times)
    whole = sorted(t[1] * 1000 for t in times)
    print(f"  with kubectl's own start: median {statistics.median(whole):.0f} ms", file=sys.stderr)
    print(f"first-gang {statistics.median(ours):.0f} ms p90 {ours[int(len(ours) * 0.9)]:.0f} bar 200", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--audit", required=True)
    parser.add_argument("names", nargs="+")
    args = parser.parse_args()
    kubectl("create", "namespace", NAMESPACE)
    wait_for("every hollow device is open", lambda: sum(
        int(n or 0) for n in kubectl("get", "gpupools", "-o", "jsonpath={.items[*].status.devices.free}").split()) == 512, 180)
    if "first" in args.names:
        bench_first(args.audit)
    if "first-gang" in args.names:
        bench_gang()


if __name__ == "__main__":
    main()
