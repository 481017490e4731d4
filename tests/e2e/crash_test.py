#!/usr/bin/env python3
"""The operator may die at any instant: killed with -9 ten times during 50 jobs, nothing is lost and nothing runs
twice; two replicas hand over. Runs after job_test.py on the same cluster."""

import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

import yaml

import cluster as c
from harness import run_all

SEED = int(os.environ.get("BIMETAL_TEST_SEED", "20260101"))
JOBS = 50
KILLS = 10


class OutsideOperator:
    """An operator on the host, under the in-cluster one's name and address."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.process = None
        server = c.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}").stdout
        self.address = re.match(r"https://([^:]+):", server).group(1)
        config = c.get("configmap", "bimetal-operator", "-n", c.SYSTEM)["data"]["config.yaml"]
        config = config.replace("0.0.0.0:9443", f"{self.address}:19443").replace("0.0.0.0:8080", "127.0.0.1:18080")
        (self.folder / "config.yaml").write_text(config)
        # Its own service account, so that its rights and the admission policies are those of the cluster.
        view = yaml.safe_load(c.kubectl("config", "view", "--raw", "--flatten", "-o", "yaml").stdout)
        token = c.kubectl("-n", c.SYSTEM, "create", "token", "bimetal-operator", "--duration=1h").stdout.strip()
        view["users"][0]["user"] = {"token": token}
        (self.folder / "kubeconfig").write_text(yaml.safe_dump(view))

    def take_over_the_service(self):
        c.kubectl("-n", c.SYSTEM, "scale", "deployment/bimetal-operator", "--replicas=0")
        c.wait_for("the operator in the cluster is gone", lambda: not c.get(
            "pods", "-n", c.SYSTEM, "-l", "app.kubernetes.io/component=operator")["items"])
        c.kubectl("-n", c.SYSTEM, "patch", "service", "bimetal-operator", "--type", "json", "-p",
                  '[{"op":"remove","path":"/spec/selector"}]')
        c.apply({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                 "metadata": {"name": "bimetal-operator-outside", "namespace": c.SYSTEM,
                              "labels": {"kubernetes.io/service-name": "bimetal-operator"}},
                 "ports": [{"name": "grpc", "port": 19443, "protocol": "TCP"}],
                 "endpoints": [{"addresses": [self.address], "conditions": {"ready": True}}]})

    def start(self):
        log = open(self.folder / "operator.log", "ab")
        self.process = subprocess.Popen(
            [c.BINARIES / "bimetal-operator", "--config", self.folder / "config.yaml", "--kubeconfig",
             self.folder / "kubeconfig"],
            stdout=log, stderr=log, env={**os.environ, "POD_NAME": "outside", "POD_IP": self.address})

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def test_fifty_jobs_survive_ten_kills_of_the_operator():
    c.need_cluster()
    c.fresh_namespace()
    c.delete_jobs()
    chance = random.Random(SEED)
    print(f"seed {SEED}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="bimetal-crash-") as folder:
        operator = OutsideOperator(folder)
        operator.take_over_the_service()
        operator.start()
        try:
            for i in range(JOBS):
                pods = chance.choice((1, 1, 2, 4))
                c.create(c.job(f"job-{i}", pods=pods, devices=chance.choice((1, 2)),
                               command=("sleep", "--seconds", str(chance.choice((1, 2, 3))))))
                if i % (JOBS // KILLS) == 2:
                    time.sleep(chance.uniform(0, 1.5))
                    operator.kill()
                    operator.start()
            def unfinished():
                return [j["metadata"]["name"] for j in c.get("gpujobs", "-n", c.TEAM)["items"]
                        if j.get("status", {}).get("state") != "Completed"]
            c.wait_for("all jobs are done", lambda: not unfinished(), 240)
            check_that_nothing_ran_twice()
        except AssertionError:
            print((operator.folder / "operator.log").read_text()[-6000:], file=sys.stderr)
            raise
        finally:
            operator.kill()
            back_into_the_cluster()


def check_that_nothing_ran_twice():
    """Per job: the last attempt ran whole, once; earlier attempts ended before it began."""
    for job in c.get("gpujobs", "-n", c.TEAM)["items"]:
        name, want = job["metadata"]["name"], job["spec"]["roles"][0]["replicas"]
        attempt = job["status"]["attempt"]
        pods = [p for p in c.pods_of(name) if p["status"]["phase"] == "Succeeded"]
        last = [p for p in pods if p["metadata"]["labels"]["bimetal.dev/attempt"] == str(attempt)]
        assert len(last) == want, f"{name}: {len(last)} of {want} pods of attempt {attempt} succeeded"
        assert [a["outcome"] for a in job["status"]["attempts"]].count("Completed") == 1, job["status"]
        assert job["status"].get("failures", 0) == 0, job["status"]
        assert int(job["status"]["usage"]["deviceMilliseconds"]) > 0, job["status"]


def back_into_the_cluster():
    c.kubectl("-n", c.SYSTEM, "delete", "endpointslice", "bimetal-operator-outside", "--ignore-not-found")
    c.install("--set", "operator.replicas=1", "--force-conflicts")
    c.kubectl("-n", c.SYSTEM, "scale", "deployment/bimetal-operator", "--replicas=1")


def test_a_standby_takes_over_within_the_lease():
    c.need_cluster()
    c.delete_jobs()
    c.install("--set", "operator.replicas=2")
    def ready():
        d = c.get("deployment", "bimetal-operator", "-n", c.SYSTEM)
        return d["status"].get("readyReplicas") == 2 and d["status"].get("updatedReplicas") == 2 and \
            d["status"].get("replicas") == 2
    c.wait_for("two ready replicas", ready, 90)
    def holder():
        return c.get("lease", "bimetal-operator", "-n", c.SYSTEM)["spec"].get("holderIdentity", "")
    first = c.wait_for("a leader", holder, 30)
    pod = first.split("@")[0]
    # At once and without a word: the lease is not given back.
    c.kubectl("-n", c.SYSTEM, "delete", "pod", pod, "--grace-period=0", "--force")
    began = time.monotonic()
    c.wait_for("another leader", lambda: holder() not in ("", first), 20)
    took = time.monotonic() - began
    assert took < 14, f"{took:.1f} s for a lease of 8 s"
    c.apply(c.job("after"))
    c.wait_state("after", "Completed", 90)
    c.install("--set", "operator.replicas=1")


if __name__ == "__main__":
    sys.exit(run_all(globals()))
