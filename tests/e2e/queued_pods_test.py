#!/usr/bin/env python3
"""Jobs and Deployments that know nothing of Bimetal, queued by one label: gangs start whole on proven nodes, what
waits says why, and a queue counts what it lent. Runs after crash_test.py on the same cluster."""

import sys

import cluster as c
from harness import run_all

QUEUE = "bimetal.dev/queue-name"


def pod_spec(devices, vendor="nvidia", seconds=600, **spec):
    limits = {f"{vendor}.com/gpu": devices} if devices else {}
    return {"terminationGracePeriodSeconds": 0, "containers": [{
        "name": "main", "image": "localhost/bimetal-workload:dev", "resources": {"limits": limits},
        "command": ["bimetal-workload", "sleep", "--seconds", str(seconds)]}], **spec}


def job(name, pods, devices, queue="default", seconds=600, **spec):
    return {"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "namespace": c.TEAM, "labels": {QUEUE: queue}},
            "spec": {"completions": pods, "parallelism": pods, "backoffLimit": 0, **spec,
                     "template": {"spec": pod_spec(devices, seconds=seconds, restartPolicy="Never")}}}


def deployment(name, replicas, devices, queue="default"):
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": c.TEAM, "labels": {QUEUE: queue}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}}, "spec": pod_spec(devices)}}}


def pods(selector):
    return c.get("pods", "-n", c.TEAM, "-l", selector)["items"]


def words(pod):
    return pod["metadata"].get("annotations", {}).get("bimetal.dev/waiting", "")


def running(selector, count, seconds=60):
    def probe():
        found = [p for p in pods(selector) if p["status"].get("phase") == "Running"]
        return found if len(found) == count else None
    return c.wait_for(f"{count} pods of {selector} run", probe, seconds)


def used(queue="default"):
    return (c.get("gpuqueue", queue) or {}).get("status", {}).get("usedDevices", 0)  # none yet of a new queue


def test_the_fleet_is_ready_and_nothing_is_in_the_queue():
    c.need_cluster()
    c.fresh_namespace()
    c.delete_jobs()
    c.wait_for_fleet()
    c.wait_for("the queue is empty", lambda: used() == 0)


def test_a_job_of_four_starts_whole_on_proven_nodes_and_is_counted():
    c.need_cluster()
    c.apply(job("gang", 4, 4))
    found = running("job-name=gang", 4)
    assert {p["spec"]["nodeName"] for p in found} == {"node-1", "node-2"}, found
    for pod in found:
        notes = pod["metadata"]["annotations"]
        assert notes["bimetal.dev/admitted-to"] == "default", notes
        assert notes["bimetal.dev/node"] == pod["spec"]["nodeName"], notes
        assert notes["bimetal.dev/pod-group-size"] == "4", notes
        assert "schedulingGates" not in pod["spec"]
    c.wait_for("the queue counts 16", lambda: used() == 16, 15)


def test_a_deployment_waits_with_its_reason_and_goes_when_there_is_room():
    c.need_cluster()
    c.apply(deployment("web", 2, 4))
    def waits():
        found = pods("app=web")
        return found if len(found) == 2 and all(words(p) for p in found) else None
    for pod in c.wait_for("both pods say why they wait", waits, 15):
        assert words(pod).startswith("WaitingForDevices: "), words(pod)
        assert [g["name"] for g in pod["spec"]["schedulingGates"]] == ["bimetal.dev/queue"]
        told = c.kubectl("describe", "pod", "-n", c.TEAM, pod["metadata"]["name"]).stdout
        assert "WaitingForDevices" in told and "bimetal-operator" in told, told
    replica_set = c.get("replicasets", "-n", c.TEAM, "-l", "app=web")["items"][0]["metadata"]["name"]
    told = c.kubectl("describe", "replicaset", "-n", c.TEAM, replica_set).stdout
    assert "WaitingForDevices" in told, told
    c.kubectl("delete", "job", "gang", "-n", c.TEAM, "--wait")
    running("app=web", 2)
    c.wait_for("the queue counts 8", lambda: used() == 8, 15)


def test_a_gang_that_can_never_fit_says_so_and_none_of_it_starts():
    c.need_cluster()
    c.apply(job("never", 3, 8))
    def told():
        found = pods("job-name=never")
        return found if len(found) == 3 and all(words(p) for p in found) else None
    for pod in c.wait_for("its pods say so", told, 15):
        assert words(pod).startswith("ExceedsCapacity: "), words(pod)
        assert "nodeName" not in pod["spec"]
    c.kubectl("delete", "job", "never", "-n", c.TEAM, "--wait")


def test_a_queue_that_is_not_there_is_named_and_the_pod_goes_once_it_is():
    c.need_cluster()
    c.apply(job("lost", 1, 1, queue="team-queue"))
    def told():
        found = pods("job-name=lost")
        return found and words(found[0])
    assert c.wait_for("it says so", told, 15).startswith("QueueNotFound: ")
    c.apply({"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "team-queue"},
             "spec": {"quotas": [{"deviceClass": "nvidia", "limit": 1}]}})
    running("job-name=lost", 1)
    c.wait_for("its queue counts 1", lambda: used("team-queue") == 1, 15)
    c.kubectl("delete", "job", "lost", "-n", c.TEAM, "--wait")
    c.kubectl("delete", "gpuqueue", "team-queue")


def test_a_failed_member_is_placed_again_and_the_others_go_on():
    c.need_cluster()
    c.apply(job("heals", 2, 2, backoffLimit=4))
    before = running("job-name=heals", 2)
    gone = before[0]["metadata"]["name"]
    c.kubectl("delete", "pod", gone, "-n", c.TEAM, "--force", "--grace-period=0")
    after = running("job-name=heals", 2)
    names = {p["metadata"]["name"] for p in after}
    assert gone not in names and before[1]["metadata"]["name"] in names, names
    c.kubectl("delete", "job", "heals", "-n", c.TEAM, "--wait")


def test_a_restart_of_the_operator_changes_nothing_and_its_metrics_know_the_owner():
    c.need_cluster()
    before = {p["metadata"]["name"]: p["metadata"]["resourceVersion"] for p in running("app=web", 2)}
    c.kubectl("rollout", "restart", "deployment", "bimetal-operator", "-n", c.SYSTEM)
    c.kubectl("rollout", "status", "deployment", "bimetal-operator", "-n", c.SYSTEM, "--timeout=60s")
    def in_metrics():
        text = c.metrics()
        lines = [l for l in text.splitlines() if l.startswith("bimetal_job_gpu_seconds_total") and 'job_name="web-' in l]
        books = [l for l in text.splitlines() if l.startswith("bimetal_books_difference_devices ")]
        return lines and float(lines[0].rsplit(" ", 1)[1]) > 0 and books and float(books[0].split()[1]) == 0
    c.wait_for("the metrics show the device time of the Deployment", in_metrics, 60)
    after = {p["metadata"]["name"]: p["metadata"]["resourceVersion"] for p in running("app=web", 2)}
    assert before == after, "the pods were written to"
    c.wait_for("the queue counts 8", lambda: used() == 8, 15)
    c.kubectl("delete", "deployment", "web", "-n", c.TEAM, "--wait")
    c.wait_for("the queue is empty", lambda: used() == 0, 30)


def test_a_pod_without_the_label_is_counted_as_it_is():
    c.need_cluster()
    plain = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain", "namespace": c.TEAM, "labels": {"app": "plain"}},
             "spec": pod_spec(8)}
    c.apply(plain)
    running("app=plain", 1)
    c.wait_for("8 are held", lambda: c.get("gpupool", "nvidia")["status"]["devices"].get("allocated") == 8, 15)
    assert used() == 0
    c.kubectl("delete", "pod", "plain", "-n", c.TEAM, "--wait")


if __name__ == "__main__":
    sys.exit(run_all(globals()))
