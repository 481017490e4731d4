#!/usr/bin/env python3
"""Bad input and trouble: each gives a condition or an error that names the field or object and the remedy, and
nothing leaks a device or evicts a bystander. Runs after job_test.py on the same cluster."""

import sys
import time

import cluster as c
from harness import run_all


def refused(obj, *words):
    """The API server refuses the object and its message holds every word."""
    done = c.create(obj, check=False)
    assert done.returncode != 0, f"accepted: {obj}"
    for word in words:
        assert word in done.stderr, f"'{word}' is not in: {done.stderr}"


def free_devices(pool):
    return c.get("gpupool", pool)["status"].get("devices", {}).get("free", 0)


def test_everything_is_free_to_begin_with():
    c.need_cluster()
    c.fresh_namespace()
    c.delete_jobs()
    c.wait_for_fleet()
    c.wait_for("16 free NVIDIA devices", lambda: free_devices("nvidia") == 16)


def test_two_variants_of_one_name_are_refused():
    c.need_cluster()
    bad = c.job("bad")
    bad["spec"]["variants"][1]["name"] = bad["spec"]["variants"][0]["name"]
    refused(bad, "variants", "uplicate")


def test_no_replicas_and_ten_thousand_are_refused():
    c.need_cluster()
    refused(c.job("bad", pods=0), "spec.roles[0].replicas")
    refused(c.job("bad", pods=10000), "spec.roles[0].replicas")


def test_a_gpu_resource_in_the_template_is_refused_with_the_remedy():
    c.need_cluster()
    template = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}
    refused(c.job("bad", template=template), "devicesPerPod")


def test_huge_counts_are_refused_and_an_honest_job_beside_them_runs():
    c.need_cluster()
    bad = c.job("bad")
    bad["spec"]["variants"][0]["devicesPerPod"] = 9223372036854775807
    refused(bad, "devicesPerPod")
    c.apply(c.job("honest"))
    c.wait_state("honest", "Completed")


def test_a_model_that_nobody_has_is_named():
    c.need_cluster()
    odd = c.job("odd", vendors=("nvidia",))
    odd["spec"]["variants"][0]["deviceSelector"] = {"models": ["NVIDIA Z9000"]}
    c.apply(odd)
    assert "Z9000" in c.wait_reason("odd", "NoMatchingDevice", 10)["message"]


def test_a_queue_that_does_not_exist_or_is_not_for_this_namespace_is_named():
    c.need_cluster()
    c.apply(c.job("lost", queueName="nowhere"))
    assert "nowhere" in c.wait_reason("lost", "QueueNotFound", 10)["message"]
    c.apply({"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": "others"},
             "spec": {"namespaceSelector": {"matchLabels": {"team": "other"}}}})
    c.apply(c.job("stranger", queueName="others"))
    c.wait_reason("stranger", "QueueNotAllowed", 10)
    c.kubectl("delete", "gpuqueue", "others")


def test_a_job_cannot_be_edited_into_another_one():
    c.need_cluster()
    done = c.kubectl("patch", "gpujob", "honest", "-n", c.TEAM, "--type", "merge", "-p",
                     '{"spec":{"queueName":"other"}}', check=False)
    assert done.returncode != 0 and "queueName" in done.stderr, done.stderr


def test_an_image_that_does_not_exist_is_said_at_once():
    c.need_cluster()
    c.apply(c.job("no-image", vendors=("nvidia",)))
    bad = c.job("bad-image", vendors=("nvidia",))
    bad["spec"]["variants"][0]["image"] = "localhost/there-is-no-such-image:1"
    c.apply(bad)
    said = c.wait_reason("bad-image", "ImagePullFailed", 30)
    assert "there-is-no-such-image" in said["message"], said["message"]
    c.wait_state("no-image", "Completed")
    c.kubectl("delete", "gpujob", "bad-image", "-n", c.TEAM)
    c.wait_for("its pod is gone", lambda: not c.pods_of("bad-image"))


def test_a_job_deleted_while_pending_starting_or_running_leaves_nothing():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("pending", pods=64, devices=8))
    c.wait_reason("pending", "ExceedsCapacity", 10)
    c.apply(c.job("running", pods=4, devices=2, command=("sleep", "--seconds", "600")))
    c.wait_state("running", "Running")
    c.apply(c.job("starting", pods=4, devices=2, command=("sleep", "--seconds", "600")))
    c.wait_for("an attempt", lambda: c.status("starting").get("attempt"))
    c.delete_jobs()
    c.wait_for("16 free NVIDIA devices", lambda: free_devices("nvidia") == 16)
    assert not c.get("services", "-n", c.TEAM)["items"], "the gangs' Services are gone too"


def test_a_pod_deleted_by_hand_restarts_the_whole_gang():
    c.need_cluster()
    c.apply(c.job("gang", pods=3, command=("sleep", "--seconds", "12")))
    c.wait_state("gang", "Running")
    c.kubectl("delete", "pod", "gang-1-worker-1", "-n", c.TEAM, "--wait=false")
    c.wait_for("the second attempt", lambda: c.status("gang").get("attempt") == 2, 90)
    live = [p["metadata"]["name"] for p in c.pods_of("gang") if p["status"]["phase"] in ("Pending", "Running")]
    assert all(name.startswith("gang-2-") for name in live), live
    done = c.wait_state("gang", "Completed", 90)
    assert done.get("failures", 0) == 0 and done["attempts"][0]["outcome"] == "Disrupted", done


def test_a_failing_program_is_retried_and_then_final_with_its_exit_code():
    c.need_cluster()
    c.apply(c.job("fails", vendors=("nvidia",), command=("no-such-command",), retry={"limit": 1}))
    done = c.wait_state("fails", "Failed", 90)
    assert done["reason"] == "RetryLimitReached" and len(done["attempts"]) == 2, done
    assert "exited with code" in done["message"], done["message"]


def test_a_member_that_the_stock_scheduler_refuses_voids_the_plan():
    c.need_cluster()
    # Both pods fit the books (the port is not in them), but two cannot have one host port on a node.
    template = {"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-1"}, "containers": [
        {"name": "main", "ports": [{"containerPort": 12345, "hostPort": 12345}]}]}}
    c.apply(c.job("ports", pods=2, vendors=("nvidia",), command=("sleep", "--seconds", "600"), template=template))
    c.wait_for("a void plan", lambda: [a for a in c.status("ports").get("attempts", [])
                                       if a.get("outcome") == "NotScheduled"], 60)
    c.kubectl("delete", "gpujob", "ports", "-n", c.TEAM)
    c.wait_for("its pods are gone", lambda: not c.pods_of("ports"))


def test_a_pod_that_tolerates_the_taint_or_names_its_node_is_refused():
    c.need_cluster()
    def pod(**spec):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "sneaky", "namespace": c.TEAM},
                "spec": {"containers": [{"name": "x", "image": "localhost/bimetal-workload:dev",
                                         "resources": {"limits": {"amd.com/gpu": 1}}}], **spec}}
    refused(pod(tolerations=[{"operator": "Exists"}]), "bimetal.dev/unvalidated")
    refused(pod(tolerations=[{"key": "bimetal.dev/unvalidated", "operator": "Exists"}]), "bimetal.dev/unvalidated")
    refused(pod(nodeName="node-4"), "nodeName")


def test_a_strangers_gpu_pod_counts_in_the_books():
    c.need_cluster()
    c.delete_jobs()
    c.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": c.TEAM},
              "spec": {"restartPolicy": "Never", "containers": [
                  {"name": "x", "image": "localhost/bimetal-workload:dev",
                   "command": ["bimetal-workload", "sleep", "--seconds", "600"],
                   "resources": {"limits": {"nvidia.com/gpu": 5}}}]}})
    c.wait_for("it is counted", lambda: free_devices("nvidia") == 11)
    c.apply(c.job("all", pods=2, devices=8, vendors=("nvidia",)))
    assert c.wait_reason("all", "WaitingForDevices", 10)["blockers"][0]["free"] == 11
    c.kubectl("delete", "pod", "stranger", "-n", c.TEAM, "--grace-period=1")
    c.wait_state("all", "Completed")


def test_another_controllers_taint_stays_when_ours_comes_and_goes():
    c.need_cluster()
    c.delete_jobs()
    c.kubectl("taint", "node", "node-3", "maintenance=soon:PreferNoSchedule")
    def keys():
        return {t["key"] for t in c.get("node", "node-3")["spec"].get("taints", [])}
    c.kubectl("patch", "gpunode", "node-3", "--type", "merge", "-p", '{"spec":{"hold":true,"holdReason":"test"}}')
    c.wait_for("both taints", lambda: keys() == {"maintenance", "bimetal.dev/unvalidated"})
    c.kubectl("patch", "gpunode", "node-3", "--type", "merge", "-p", '{"spec":{"hold":false}}')
    c.wait_for("theirs alone", lambda: keys() == {"maintenance"})
    c.kubectl("taint", "node", "node-3", "maintenance-")


def test_quarantine_ends_only_by_a_passing_run():
    c.need_cluster()
    c.run(c.BINARIES / "bimetal-machine", "clear", c.machine_folder("node-4"))
    c.kubectl("-n", c.SYSTEM, "rollout", "restart", "deployment/bimetal-operator")
    c.kubectl("-n", c.SYSTEM, "rollout", "status", "deployment/bimetal-operator", "--timeout=2m")
    time.sleep(3)
    assert c.phase("node-4") == "Quarantined", "a restart clears nothing"
    c.kubectl("patch", "gpunode", "node-4", "--type", "merge", "-p", '{"spec":{"revalidate":"repaired"}}')
    c.wait_for("node-4 is admitted", lambda: c.phase("node-4") == "Admitted", 60)
    c.wait_for("and offers its devices", lambda: c.offered("node-4", "amd") == 8, 30)


def test_the_agent_has_no_right_in_the_cluster():
    c.need_cluster()
    who = f"system:serviceaccount:{c.SYSTEM}:bimetal-agent"
    for verb, what in (("patch", "nodes"), ("create", "pods"), ("get", "secrets"), ("list", "pods"),
                       ("patch", "gpunodes/status"), ("get", "leases")):
        done = c.kubectl("auth", "can-i", verb, what, "-A", "--as", who, check=False)
        assert done.stdout.strip() == "no", f"{verb} {what}: {done.stdout}"
    operator = f"system:serviceaccount:{c.SYSTEM}:bimetal-operator"
    for verb, what in (("list", "secrets"), ("update", "clusterroles"), ("create", "clusterrolebindings"),
                       ("delete", "nodes"), ("patch", "gpujobs")):
        done = c.kubectl("auth", "can-i", verb, what, "-A", "--as", operator, check=False)
        assert done.stdout.strip() == "no", f"{verb} {what}: {done.stdout}"


def move_operator(node):
    """The operator's pod is made again on `node`."""
    others = [name for name in c.MACHINES if name != node]
    c.kubectl("cordon", *others)
    try:
        c.kubectl("-n", c.SYSTEM, "rollout", "restart", "deployment/bimetal-operator")
        c.kubectl("-n", c.SYSTEM, "rollout", "status", "deployment/bimetal-operator", "--timeout=2m")
    finally:
        c.kubectl("uncordon", *others)


def test_a_node_that_vanishes_with_the_operator_costs_its_gang_one_attempt_and_no_bystander():
    c.need_cluster()
    c.delete_jobs()
    move_operator("node-2")
    # Two NVIDIA nodes of eight devices: a gang of 2 x 5 spans both; the bystander runs on an AMD node.
    c.apply(c.job("gang", pods=2, devices=5, command=("sleep", "--seconds", "600")))
    c.apply(c.job("bystander", vendors=("amd",), command=("sleep", "--seconds", "600")))
    c.wait_state("gang", "Running")
    c.wait_state("bystander", "Running")
    assert c.status("gang")["assignment"]["variant"] == "cuda", c.status("gang")
    before = {p["metadata"]["uid"] for p in c.pods_of("bystander")}
    c.run(c.DEV_CLUSTER, "node", "--name", c.NAME, "node-2", "--kill")
    try:
        # The kubelet's lease must run out (50 s), then the operator moves (its toleration of 10 s, its
        # start and its lease), then jobs.nodeLostAfter (15 s here).
        first = c.wait_for("the first attempt is over", lambda: [
            a for a in c.status("gang").get("attempts", [])
            if a["number"] == 1 and a.get("outcome") == "Disrupted"], 150)
        assert c.status("gang").get("failures", 0) == 0, (first, c.status("gang"))
        # One NVIDIA node is left, too small for both pods: the same gang goes to the AMD nodes.
        c.wait_for("the gang runs on the other vendor", lambda: c.status("gang").get("state") == "Running"
                   and c.status("gang").get("attempt", 0) >= 2, 60)
        assert c.status("gang")["assignment"]["variant"] == "rocm", c.status("gang")
        assert {p["spec"]["nodeName"] for p in c.pods_of("gang")} == {"node-3", "node-4"}
        assert {p["metadata"]["uid"] for p in c.pods_of("bystander")} == before, "the bystander was not touched"
        c.wait_for("node-2 is lost", lambda: c.phase("node-2") == "Lost", 45)
    finally:
        c.run(c.DEV_CLUSTER, "up", "--name", c.NAME)
    c.wait_for("node-2 is proven again", lambda: c.phase("node-2") == "Admitted", 120)
    c.delete_jobs()
    c.wait_for("16 free NVIDIA devices", lambda: free_devices("nvidia") == 16)


if __name__ == "__main__":
    sys.exit(run_all(globals()))
