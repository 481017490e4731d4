#!/usr/bin/env python3
"""An inference service with real HTTP in real pods: a client that never stops asking sees no request fail while the
service is rolled out, moved to the other vendor, scaled, and loses pods. Runs after job_test.py on the same cluster."""

import re
import sys

import cluster as c
from harness import run_all

IMAGE = "localhost/bimetal-workload:dev"


def service(replicas, arguments=(), **of_variant):
    """The GPUService `chat`; keyword arguments are fields of its variants: cuda={...}."""
    def variant(name, vendor):
        return {"name": name, "vendor": vendor, "image": IMAGE, "port": 8080,
                "command": ["bimetal-workload", "serve", "--port", "8080", *arguments], **of_variant.get(name, {})}
    return {"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUService",
            "metadata": {"name": "chat", "namespace": c.TEAM},
            "spec": {"replicas": replicas, "variants": [variant("cuda", "nvidia"), variant("rocm", "amd")],
                     "readiness": {"path": "/healthz", "periodSeconds": 1}, "drainSeconds": 3,
                     "rollout": {"maxSurge": 1, "maxUnavailable": 0}}}


def status():
    return (c.get("gpuservice", "chat", "-n", c.TEAM) or {}).get("status", {})


def condition(name):
    return next((x for x in status().get("conditions", []) if x["type"] == name), {})


def settled(replicas, summary=None):
    """The service has its replicas, all as the spec says."""
    def probe():
        found = c.get("gpuservice", "chat", "-n", c.TEAM)
        s = found.get("status", {})
        return (s.get("observedGeneration") == found["metadata"]["generation"]
                and s.get("readyReplicas") == s.get("updatedReplicas") == s.get("replicas") == replicas
                and s.get("draining") == 0 and (summary is None or s.get("summary") == summary) and s)
    return c.wait_for(f"{replicas} replicas, {summary}", probe, 120)


def replicas():
    """Pods of the service that are not on their way out."""
    found = c.get("pods", "-n", c.TEAM, "-l", "bimetal.dev/service=chat")["items"]
    return [p for p in found if "deletionTimestamp" not in p["metadata"]]


def asked():
    """What the client has counted so far: (asked, failed, by vendor)."""
    log = c.kubectl("logs", "-n", c.TEAM, "asker", check=False).stdout  # nothing before it has started
    lines = re.findall(r"^asked (\d+) failed (\d+)((?: \w+ \d+)*)$", log, re.M)
    if not lines:
        return 0, 0, {}
    total, failed, rest = lines[-1]
    words = rest.split()
    assert int(failed) == 0, log[-3000:]
    return int(total), int(failed), dict(zip(words[::2], map(int, words[1::2])))


def wait_for_answers(vendor, more=20):
    before = asked()[2].get(vendor, 0)
    c.wait_for(f"{more} more answers of {vendor}", lambda: asked()[2].get(vendor, 0) >= before + more)


def test_a_service_of_three_replicas_answers_over_its_address():
    c.need_cluster()
    c.fresh_namespace()
    c.delete_jobs()
    c.wait_for_fleet()
    c.apply(service(3))
    settled(3, "cuda 3/3, rocm 0/0")
    assert condition("Available")["status"] == "True"
    client = {"name": "asker", "image": IMAGE,
              "command": ["bimetal-workload", "ask", "--target", "chat:80", "--seconds", "3600", "--clients", "4"]}
    c.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "asker", "namespace": c.TEAM},
             "spec": {"containers": [client], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}})
    wait_for_answers("nvidia")


def test_a_rolling_update_replaces_every_pod_and_no_request_fails():
    c.need_cluster()
    before = {p["metadata"]["uid"] for p in replicas()}
    c.apply(service(3, arguments=("--delay-ms", "5")))
    settled(3)
    after = {p["metadata"]["uid"] for p in replicas()}
    assert not before & after
    wait_for_answers("nvidia")


def test_a_forced_move_to_the_other_vendor_loses_no_request():
    c.need_cluster()
    c.apply(service(3, arguments=("--delay-ms", "5"), cuda={"maxReplicas": 0}))
    settled(3, "cuda 0/0, rocm 3/3")
    assert {p["spec"]["nodeName"] for p in replicas()} <= {"node-3", "node-4"}
    wait_for_answers("amd")


def test_kubectl_scale_works_and_loses_no_request():
    c.need_cluster()
    for count in (5, 2):
        c.kubectl("scale", "gpuservice", "chat", "-n", c.TEAM, "--replicas", str(count))
        settled(count)
    scale = c.kubectl("get", "--raw", f"/apis/bimetal.dev/v1alpha1/namespaces/{c.TEAM}/gpuservices/chat/scale").stdout
    assert '"replicas":2' in scale and "bimetal.dev/service-uid=" in scale, scale
    wait_for_answers("amd")


def test_more_replicas_than_devices_wait_and_say_why():
    c.need_cluster()
    c.kubectl("scale", "gpuservice", "chat", "-n", c.TEAM, "--replicas", "17")
    c.wait_for("two wait", lambda: status().get("blocked") == 2 and status().get("readyReplicas") == 15, 120)
    limited = condition("ScalingLimited")
    assert limited["status"] == "True" and limited["reason"] == "WaitingForDevices", limited
    rocm = next(v for v in status()["variants"] if v["name"] == "rocm")
    assert rocm["blocked"] == 2 and "free" in rocm["message"], rocm
    c.kubectl("scale", "gpuservice", "chat", "-n", c.TEAM, "--replicas", "2")
    settled(2)


def test_a_pod_deleted_by_hand_is_drained_and_replaced():
    c.need_cluster()
    victim = replicas()[0]["metadata"]["name"]
    c.kubectl("delete", "pod", victim, "-n", c.TEAM, "--wait=false")
    c.wait_for("another replica", lambda: victim not in {p["metadata"]["name"] for p in replicas()}
               and status().get("readyReplicas") == 2, 90)
    wait_for_answers("amd")


def test_an_address_that_is_removed_comes_back():
    c.need_cluster()
    c.kubectl("delete", "pod", "asker", "-n", c.TEAM)
    c.kubectl("delete", "service", "chat", "-n", c.TEAM)
    c.wait_for("the Service", lambda: c.get("service", "chat", "-n", c.TEAM), 10)


def test_a_deleted_service_leaves_nothing():
    c.need_cluster()
    c.kubectl("delete", "gpuservice", "chat", "-n", c.TEAM)
    c.wait_for("no replica is left", lambda: not replicas(), 60)
    c.wait_for("no Service is left", lambda: not c.get("service", "chat", "-n", c.TEAM), 30)


if __name__ == "__main__":
    sys.exit(run_all(globals()))
