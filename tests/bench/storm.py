"""A storm of registrations and of re-validations on 1,000 hollow nodes.

The agents of all hollow nodes start at once; it waits until every node is admitted. Then every node gets another
driver, under which the first five fail: the breaker must stop the others. At last the profile lets them go on.
"""

import collections
import json
import signal
import sys
import time

import rig
from api import say

FAILING = 5
MAX_RUNS = 16
NEXT_DRIVER = "hollow-2"


def nodes(cluster):
    """(phase, reason, driver) -> how many GPUNodes."""
    rows = cluster.kubectl("get", "gpunodes", "-o", "jsonpath={range .items[*]}{.status.phase}/{.status.reason}/"
                           "{.status.fingerprint}{'\\n'}{end}").split()
    return collections.Counter(tuple(row.split("/")) for row in rows)


def running_pods(cluster):
    """Validation pods that have not been asked to go."""
    rows = cluster.kubectl("get", "pods", "-n", rig.SYSTEM, "-l", "bimetal.dev/validates", "-o",
                           "jsonpath={range .items[*]}{.metadata.deletionTimestamp}|{end}")
    return sum(1 for row in rows.split("|")[:-1] if not row)


def wait(cluster, what, done, seconds, most_pods):
    """Until done(nodes()); keeps the most validation pods that were seen at once."""
    begin = time.monotonic()
    while True:
        now = nodes(cluster)
        most_pods[0] = max(most_pods[0], running_pods(cluster))
        if done(now):
            return time.monotonic() - begin
        if time.monotonic() - begin > seconds:
            sys.exit(f"{what}: not within {seconds} s\n" + "\n".join(f"{n:6} {k}" for k, n in now.most_common()))
        time.sleep(1)


def admitted(counts, driver):
    return sum(n for (phase, _, fingerprint), n in counts.items() if phase == "Admitted" and fingerprint == driver)


def breaker_is_open(cluster):
    conditions = json.loads(cluster.kubectl("get", "gpupool", "nvidia", "-o", "json")).get("status", {}).get("conditions", [])
    return any(c["type"] == "BreakerOpen" and c["status"] == "True" for c in conditions)


def storm(run):
    count = run.size(1000, 64)
    with run.cluster.running(count, "nvidia") as cluster:
        cluster.install(max_runs=MAX_RUNS)
        operator = cluster.operator_pid()
        idle = rig.peak_memory_mib(operator)
        most = [0]
        cluster.start_agents("--next-driver", NEXT_DRIVER, "--fail", str(FAILING))
        took = wait(cluster, "every node is admitted", lambda now: admitted(now, "hollow-1") == count, 1800, most)
        say(f"{count} nodes registered and admitted in {took:.0f} s, at most {most[0]} runs at once; operator's peak memory "
            f"{rig.peak_memory_mib(operator)} MiB, {idle} before")
        run.require(most[0] <= MAX_RUNS, f"{most[0]} validation pods at once, the profile allows {MAX_RUNS}")

        cluster.agents.send_signal(signal.SIGUSR1)
        most = [0]
        wait(cluster, "the breaker opens", lambda now: breaker_is_open(cluster), 300, most)
        # Runs that had begun may end; then nothing moves any more.
        wait(cluster, "the runs under way have ended", lambda now: running_pods(cluster) == 0, 120, most)
        before = nodes(cluster)
        time.sleep(20)
        held = nodes(cluster)
        failed = sum(n for (phase, _, _), n in held.items() if phase == "Quarantined")
        passed = admitted(held, NEXT_DRIVER)
        waiting = sum(n for (_, reason, _), n in held.items() if reason == "BreakerOpen")
        run.require(held == before and failed + passed + waiting == count and waiting >= count - 2 * MAX_RUNS - FAILING,
                    f"another driver on all: {failed} failed, {passed} passed before the breaker held, {waiting} are held")
        run.require(most[0] <= MAX_RUNS, f"{most[0]} validation pods at once, the profile allows {MAX_RUNS}")

        cluster.profile(MAX_RUNS, maxSameFailures=1000)
        again = wait(cluster, "the others are admitted", lambda now: admitted(now, NEXT_DRIVER) == count - FAILING, 1800, most)
        memory = rig.peak_memory_mib(operator)
        say(f"the profile lets them go on: {again:.0f} s; operator's peak memory {memory} MiB")
    run.note(f"memory-mib {memory} held {waiting} revalidated {again:.0f} s")
    return run.finish(f"{took:.0f}", "s", "-")
