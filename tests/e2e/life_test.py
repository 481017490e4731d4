#!/usr/bin/env python3
"""The life of a job on real kubelets: suspension, classes of failure, limits, checkpoints. Runs after job_test.py on the
same cluster."""

import sys
import time

import cluster as c
from harness import run_all

SHELL = "localhost/bimetal-toolbox:dev"


def conditions(name):
    return {x["type"]: (x["status"], x["reason"]) for x in c.status(name).get("conditions", [])}


def events(name):
    found = c.get("events", "-n", c.TEAM, "--field-selector", f"involvedObject.kind=GPUJob,involvedObject.name={name}")
    return [e["reason"] for e in found["items"]]


def shell(name, script, **spec):
    """A job of one pod that runs a script of the shell."""
    job = c.job(name, vendors=("nvidia",), **spec)
    job["spec"]["variants"][0].update(image=SHELL, command=["/bin/sh", "-c", script])
    return job


def ended(name):
    """Exactly one of Complete and Failed is True."""
    held = conditions(name)
    return sorted(t for t in ("Complete", "Failed") if held.get(t, ("", ""))[0] == "True")


def test_a_suspended_job_gives_its_devices_back_and_goes_on_when_it_is_let():
    c.need_cluster()
    c.fresh_namespace()
    c.delete_jobs()
    c.wait_for_fleet()
    c.apply(c.job("paused", pods=2, devices=8, vendors=("nvidia",), command=("sleep", "--seconds", "600")))
    c.wait_state("paused", "Running")
    c.kubectl("patch", "gpujob", "paused", "-n", c.TEAM, "--type", "merge", "-p", '{"spec":{"suspend":true}}')
    c.wait_state("paused", "Suspended", 90)
    assert conditions("paused")["Suspended"] == ("True", "Suspended"), conditions("paused")
    assert not [p for p in c.pods_of("paused") if p["status"]["phase"] in ("Pending", "Running")]
    c.apply(c.job("other", pods=2, devices=8, vendors=("nvidia",)))
    c.wait_state("other", "Completed", 60)
    c.kubectl("patch", "gpujob", "paused", "-n", c.TEAM, "--type", "merge", "-p", '{"spec":{"suspend":false}}')
    again = c.wait_state("paused", "Running", 60)
    assert again["attempt"] == 2 and again.get("failures", 0) == 0, again
    assert conditions("paused")["Suspended"][0] == "False"
    assert again["attempts"][0]["outcome"] == "Suspended", again["attempts"]


def test_a_program_killed_for_memory_is_out_of_memory_and_its_rule_holds():
    c.need_cluster()
    c.delete_jobs()
    c.apply(shell("hungry", "exit 137", retry={"limit": 5, "rules": [{"class": "OutOfMemory", "action": "Fail"}]}),
            shell("broken", "exit 3", retry={"limit": 1, "backoff": "1s"}))
    hungry = c.wait_state("hungry", "Failed", 60)
    assert hungry["attempts"][-1]["class"] == "OutOfMemory" and hungry["reason"] == "NotRetried", hungry
    assert hungry["attempts"][-1]["failedNodes"], hungry
    broken = c.wait_state("broken", "Failed", 60)
    assert [a["class"] for a in broken["attempts"]] == ["UserError", "UserError"], broken
    assert ended("hungry") == ["Failed"] and ended("broken") == ["Failed"]
    c.wait_for("Events on the job", lambda: {"PodFailed", "RetryLimitReached"} <= set(events("broken")), 10)


def test_a_job_that_cannot_start_in_time_fails_and_says_what_it_waited_for():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("late", pods=64, devices=8, vendors=("nvidia",), limits={"startDeadline": "3s"}))
    late = c.wait_state("late", "Failed", 15)
    assert late["reason"] == "StartDeadlineExceeded" and "ExceedsCapacity" in late["message"], late
    assert ended("late") == ["Failed"] and not c.pods_of("late")


def test_an_attempt_that_runs_too_long_is_ended_as_a_timeout():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("long", vendors=("amd",), command=("sleep", "--seconds", "600"), limits={"maxDuration": "3s"}))
    long = c.wait_state("long", "Failed", 60)
    assert long["reason"] == "MaxDurationExceeded" and long["attempts"][0]["class"] == "Timeout", long


def test_an_ended_job_is_deleted_after_its_time_with_its_pods():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("gone", limits={"ttlAfterFinished": "5s"}), c.job("kept"))
    c.wait_state("gone", "Completed", 60)
    c.wait_state("kept", "Completed", 60)
    c.wait_for("the object is gone", lambda: c.get("gpujob", "gone", "-n", c.TEAM) is None, 20)
    c.wait_for("its pods are gone", lambda: not c.pods_of("gone"), 30)
    assert c.status("kept")["state"] == "Completed"


def test_a_stopped_program_gets_its_signal_and_its_grace():
    c.need_cluster()
    c.delete_jobs()
    script = ("trap 'echo saved at $BIMETAL_CHECKPOINT_PATH; sleep 1; exit 0' USR1; trap '' TERM; "
              "while true; do sleep 0.2; done")
    job = shell("saver", script)
    job["spec"]["checkpoint"] = {"path": "/tmp/ckpt", "signal": "SIGUSR1", "graceSeconds": 20}
    c.apply(job)
    c.wait_state("saver", "Running")
    pod = c.pods_of("saver")[0]
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30, "Kubernetes' own is longer than what was asked for"
    follow = c.kubectl("patch", "gpujob", "saver", "-n", c.TEAM, "--type", "merge", "-p", '{"spec":{"suspend":true}}')
    assert follow.returncode == 0
    begin = time.monotonic()
    c.wait_state("saver", "Suspended", 60)
    assert time.monotonic() - begin < 15, "the hook ended with the program and not with the grace"


def test_a_budget_that_is_spent_suspends_the_job_until_it_is_raised():
    c.need_cluster()
    c.delete_jobs()
    c.apply(c.job("costly", pods=2, devices=8, vendors=("nvidia",), command=("sleep", "--seconds", "600"),
                  limits={"budget": {"amount": "0.05", "currency": "USD", "action": "Suspend"}}))
    c.wait_reason("costly", "BudgetExceeded", 60)
    c.wait_state("costly", "Suspended", 60)
    assert conditions("costly")["BudgetExceeded"] == ("True", "BudgetExceeded"), conditions("costly")
    c.kubectl("patch", "gpujob", "costly", "-n", c.TEAM, "--type", "merge", "-p",
              '{"spec":{"limits":{"budget":{"amount":"100"}}}}')
    c.wait_state("costly", "Running", 60)
    c.delete_jobs()


def test_bounds_beyond_sense_are_refused_with_a_word():
    c.need_cluster()
    for field, value in (("limits", {"startDeadline": "soon"}), ("limits", {"budget": {"amount": "-1", "currency": "USD"}}),
                         ("checkpoint", {"path": "not/absolute"}), ("retry", {"rules": [{"class": "Bad", "action": "Retry"}]})):
        bad = c.job("bad")
        bad["spec"][field] = value
        done = c.create(bad, check=False)
        assert done.returncode != 0 and field in done.stderr, f"{field}: {done.stderr or 'accepted'}"


if __name__ == "__main__":
    sys.exit(run_all(globals()))
