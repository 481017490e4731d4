#!/usr/bin/env python3
"""Policies of jobs and queues on a real cluster: the choice among variants by price, gangs that start smaller, and devices
taken back for whom they are guaranteed. Runs after job_test.py on the same cluster."""

import sys

import cluster as c
from harness import run_all

FOREVER = ("sleep", "--seconds", "600")


def choosing(name, policy, **of_cuda):
    job = c.job(name, selection={"policy": policy}, command=FOREVER)
    job["spec"]["variants"][0].update(of_cuda)
    job["spec"]["variants"][1]["relativeThroughput"] = "1.0"
    return job


def queue(name, **spec):
    return {"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUQueue", "metadata": {"name": name}, "spec": spec}


def test_the_price_book_decides_between_the_vendors():
    c.need_cluster()
    c.fresh_namespace()
    c.delete_jobs()
    c.wait_for_fleet()
    # An hour costs 2.30 on NVIDIA and 2.06 on AMD.
    c.apply(choosing("cheap", "BestValue", relativeThroughput="1.0"),
            choosing("fast", "BestValue", relativeThroughput="1.5"),
            choosing("capped", "InOrder", relativeThroughput="1.0", maxPricePerHour="2.10"))
    for name, variant in (("cheap", "rocm"), ("fast", "cuda"), ("capped", "rocm")):
        assert c.wait_state(name, "Running")["assignment"]["variant"] == variant, name
    poor = c.job("poor", vendors=("nvidia",))
    poor["spec"]["variants"][0]["maxPricePerHour"] = "1.00"
    c.apply(poor)
    waits = c.wait_reason("poor", "WaitingForPrice", 5)
    assert "the cheapest costs 2.30" in waits["message"], waits


def test_a_gang_starts_with_the_pods_that_have_a_place():
    c.need_cluster()
    c.delete_jobs()
    job = c.job("elastic", pods=4, devices=8, vendors=("nvidia",), command=FOREVER)
    job["spec"]["roles"][0]["minReplicas"] = 1
    c.apply(job)
    runs = c.wait_for("it runs", lambda: (lambda s: s if s.get("ready") == "2/2" else None)(c.status("elastic")))
    assert runs["state"] == "Running" and runs["assignment"]["devices"] == 16, runs
    assert len(c.pods_of("elastic")) == 2


def test_what_is_guaranteed_is_taken_back_and_the_evicted_gang_goes_on_afterwards():
    c.need_cluster()
    c.delete_jobs()
    c.apply(queue("owner", quotas=[{"deviceClass": "nvidia", "guaranteed": 8}], preemption={"reclaim": "Any"}),
            queue("guest"))
    try:
        c.apply(c.job("borrower", pods=2, devices=8, vendors=("nvidia",), command=FOREVER, queueName="guest"))
        c.wait_state("borrower", "Running")
        c.apply(c.job("rightful", devices=8, vendors=("nvidia",), command=("sleep", "--seconds", "3"), queueName="owner"))
        c.wait_state("rightful", "Running", 60)
        evicted = c.status("borrower")
        assert evicted["state"] == "Pending" and evicted.get("failures", 0) == 0, evicted
        assert evicted["attempts"][0]["class"] == "Preempted", evicted
        told = {x["type"]: x for x in evicted["conditions"]}["Preempted"]
        assert told["status"] == "True" and "team/rightful" in told["message"], told
        c.wait_state("rightful", "Completed", 60)
        assert c.wait_state("borrower", "Running", 60)["attempt"] == 2
    finally:
        c.delete_jobs()
        c.kubectl("delete", "gpuqueues", "owner", "guest")


if __name__ == "__main__":
    sys.exit(run_all(globals()))
