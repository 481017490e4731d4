#!/usr/bin/env python3
"""One GPU job, end to end: nodes are proven, gangs run on either vendor, the queue explains, time is billed."""

import re
import sys

import cluster as c
from harness import run_all, ROOT


def test_the_chart_installs_on_a_fresh_cluster():
    c.need_cluster()
    c.build_machines()
    c.install()
    c.fresh_namespace()
    c.kubectl("apply", "-f", ROOT / "manifests/samples/pricebook-example.yaml")


def test_three_nodes_are_admitted_and_the_one_with_a_stuck_bit_is_quarantined():
    c.need_cluster()
    c.wait_for_fleet()
    bad = c.get("gpunode", "node-4")["status"]
    assert "memory-pattern" in bad["message"], bad["message"]
    assert bad["simulated"] is True
    good = c.get("gpunode", "node-1")["status"]
    assert good["vendor"] == "nvidia" and good["driverVersion"], good
    assert len(good["devices"]) == 8 and all(d["architecture"] == "sm_90" for d in good["devices"])
    assert all(d.get("firmware") for d in good["devices"])


def test_only_the_failed_device_is_withheld_and_its_neighbours_take_jobs():
    c.need_cluster()
    def tainted():
        return [n["metadata"]["name"] for n in c.get("nodes")["items"]
                if any(t["key"] == "bimetal.dev/unvalidated" for t in n["spec"].get("taints", []))]
    c.wait_for("no node is tainted", lambda: tainted() == [])
    bad = c.get("gpunode", "node-4")["status"]
    assert bad["reason"] == "DeviceQuarantined" and bad["validatedCount"] == 7, bad
    failed = [r["id"] for r in bad["vendors"][0]["records"] if r.get("failedCheck")]
    assert [d["id"] for d in bad["devices"] if not d.get("open")] == failed and len(failed) == 1, bad
    assert bad["vendors"][0]["path"]["fingerprint"] == bad["vendors"][0]["fingerprint"], "a pod has gone the way of a job"


def test_a_gang_over_two_vendors_runs_whole_on_one_and_exchanges_values():
    c.need_cluster()
    c.apply(c.job("gang", pods=4, devices=2, command=("exchange", "--rounds", "5")))
    done = c.wait_state("gang", "Completed", 90)
    assert done["assignment"]["variant"] == "cuda" and done["assignment"]["devices"] == 8, done
    pods = c.pods_of("gang")
    assert len(pods) == 4
    for pod in pods:
        container = pod["spec"]["containers"][0]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
        log = c.kubectl("logs", "-n", c.TEAM, pod["metadata"]["name"]).stdout
        assert re.search(r"world=4 rank=\d ok", log), log
    assert {p["spec"]["nodeName"] for p in pods} <= {"node-1", "node-2"}


def test_a_finished_job_shows_device_seconds_and_cost_and_so_do_the_metrics():
    c.need_cluster()
    usage = c.status("gang")["usage"]
    assert usage["basis"] == "Final" and usage["cost"].endswith(" USD"), usage
    assert float(usage["deviceSeconds"]) > 0
    # Every node of the pool has the same price: 2.10 + 0.12 + 0.08 for an hour.
    want = float(usage["deviceSeconds"]) * 2.30 / 3600
    assert abs(float(usage["cost"].split()[0]) - want) < 1e-6, (usage, want)
    def in_metrics():
        lines = [l for l in c.metrics().splitlines() if 'job_name="gang"' in l and l.startswith("bimetal_job_")]
        seconds = sum(float(l.rsplit(" ", 1)[1]) for l in lines if "seconds" in l.split("{")[0])
        cost = sum(float(l.rsplit(" ", 1)[1]) for l in lines if "cost" in l.split("{")[0])
        return abs(seconds - float(usage["deviceSeconds"])) < 0.01 and abs(cost - want) < 1e-6
    c.wait_for("the metrics show the same", in_metrics, 15)


def test_the_queue_explains_who_waits_who_is_the_other_vendor_and_who_never_fits():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("holder", pods=2, devices=8, vendors=("nvidia",), command=("sleep", "--seconds", "20")))
    c.wait_state("holder", "Running")
    c.apply(c.job("waits", devices=4, vendors=("nvidia",)),
            c.job("other", pods=2, devices=2, vendors=("amd",)),
            c.job("never", pods=64, devices=8, vendors=("nvidia",)))
    waits = c.wait_reason("waits", "WaitingForDevices", 5)
    assert waits["blockers"][0]["need"] == 4 and waits["blockers"][0].get("free", 0) == 0, waits
    assert waits["blockers"][0]["unblockedBy"], waits
    assert c.wait_reason("never", "ExceedsCapacity", 5)["state"] == "Pending"
    other = c.wait_state("other", "Completed")
    assert other["assignment"]["vendor"] == "amd"
    assert {p["spec"]["nodeName"] for p in c.pods_of("other")} <= {"node-3", "node-4"}
    c.wait_state("waits", "Completed", 60)


def test_a_job_that_needs_the_failed_device_waits_for_its_validation():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("big", pods=2, devices=8, vendors=("amd",)))
    reason = c.wait_for("a reason", lambda: c.status("big").get("reason"))
    c.wait_reason("big", "WaitingForValidation", 10)
    assert not c.pods_of("big"), reason


if __name__ == "__main__":
    sys.exit(run_all(globals()))
