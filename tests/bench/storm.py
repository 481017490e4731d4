#!/usr/bin/env python3
"""A storm of registrations and of re-validations, on the cluster of KUBECONFIG; dev/bench runs it.

Starts the agents of all hollow nodes at once and waits until every node is admitted. Then every node
gets another driver, under which the first five fail: the breaker must stop the others. At last the
profile lets them go on.
"""

import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import time

FAILING = 5
MAX_RUNS = 16
NEXT_DRIVER = "hollow-2"


def kubectl(*args, stdin=None):
    done = subprocess.run(["kubectl", *args], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"kubectl {' '.join(args)}: {done.stderr}")
    return done.stdout


def profile(**breakers):
    return {"apiVersion": "bimetal.dev/v1alpha1", "kind": "ValidationProfile", "metadata": {"name": "storm"},
            "spec": {"pathCheck": "Skip", "breakers": {"maxRuns": MAX_RUNS, **breakers}}}


POOL = {"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUPool", "metadata": {"name": "storm"},
        "spec": {"vendor": "nvidia", "gate": "Enforce", "validationProfileName": "storm"}}


def nodes():
    """(phase, reason) -> how many GPUNodes."""
    rows = kubectl("get", "gpunodes", "-o", "jsonpath={range .items[*]}{.status.phase}/{.status.reason}/"
                   "{.status.fingerprint}{'\\n'}{end}").split()
    return collections.Counter(tuple(row.split("/")) for row in rows)


def running_pods():
    """Validation pods that have not been asked to go."""
    rows = kubectl("get", "pods", "-n", "bimetal-system", "-l", "bimetal.dev/validates", "-o",
                   "jsonpath={range .items[*]}{.metadata.deletionTimestamp}|{end}")
    return sum(1 for row in rows.split("|")[:-1] if not row)


def operator_pid():
    """The youngest operator of this host."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                text = stat.read()
        except OSError:
            continue
        if "(bimetal-operato)" in text:  # the kernel keeps 15 characters
            found.append((int(text.rsplit(")", 1)[1].split()[19]), pid))
    return max(found)[1] if found else None


def peak_memory_mib():
    pid = operator_pid() or sys.exit("no bimetal-operator runs on this host")
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


def wait(what, done, seconds, most_pods):
    """Until done(nodes()); keeps the most validation pods that were seen at once."""
    begin = time.monotonic()
    while True:
        now = nodes()
        most_pods[0] = max(most_pods[0], running_pods())
        if done(now):
            return time.monotonic() - begin
        if time.monotonic() - begin > seconds:
            sys.exit(f"{what}: not within {seconds} s\n" + "\n".join(f"{n:6} {k}" for k, n in now.most_common()))
        time.sleep(1)


def admitted(counts, driver):
    return sum(n for (phase, _, fingerprint), n in counts.items() if phase == "Admitted" and fingerprint == driver)


def breaker_is_open():
    conditions = json.loads(kubectl("get", "gpupool", "storm", "-o", "json")).get("status", {}).get("conditions", [])
    return any(c["type"] == "BreakerOpen" and c["status"] == "True" for c in conditions)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("hollow", nargs="+")
    args = parser.parse_args()
    kubectl("apply", "-f", "-", stdin=json.dumps(profile()))
    kubectl("apply", "-f", "-", stdin=json.dumps(POOL))
    idle = peak_memory_mib()
    most = [0]
    with open(args.log, "w", encoding="utf-8") as log:
        hollow = subprocess.Popen([*args.hollow, "--next-driver", NEXT_DRIVER, "--fail", str(FAILING)],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        took = wait("every node is admitted", lambda now: admitted(now, "hollow-1") == args.nodes, 1800, most)
        memory = peak_memory_mib()
        print(f"  {args.nodes} nodes registered and admitted in {took:.0f} s, at most {most[0]} runs at once; operator's "
              f"peak memory {memory} MiB, {idle} before", file=sys.stderr)
        if most[0] > MAX_RUNS:
            sys.exit(f"{most[0]} validation pods at once, the profile allows {MAX_RUNS}")

        hollow.send_signal(signal.SIGUSR1)
        most = [0]
        wait("the breaker opens", lambda now: breaker_is_open(), 300, most)
        # Runs that had begun may end; then nothing moves any more.
        wait("the runs under way have ended", lambda now: running_pods() == 0, 120, most)
        before = nodes()
        time.sleep(20)
        held = nodes()
        failed = sum(n for (phase, _, _), n in held.items() if phase == "Quarantined")
        passed = admitted(held, NEXT_DRIVER)
        waiting = sum(n for (_, reason, _), n in held.items() if reason == "BreakerOpen")
        print(f"  another driver on all: {failed} failed, {passed} passed before the breaker held, {waiting} are held",
              file=sys.stderr)
        if held != before or failed + passed + waiting != args.nodes or waiting < args.nodes - 2 * MAX_RUNS - FAILING:
            sys.exit(f"the breaker did not hold: {held}")
        if most[0] > MAX_RUNS:
            sys.exit(f"{most[0]} validation pods at once, the profile allows {MAX_RUNS}")

        kubectl("apply", "-f", "-", stdin=json.dumps(profile(maxSameFailures=1000)))
        again = wait("the others are admitted", lambda now: admitted(now, NEXT_DRIVER) == args.nodes - FAILING, 1800, most)
        memory = peak_memory_mib()
        print(f"  the profile lets them go on: {again:.0f} s; operator's peak memory {memory} MiB", file=sys.stderr)
        print(f"storm {took:.0f} s memory-mib {memory} held {waiting} revalidated {again:.0f} s", flush=True)
    finally:
        hollow.terminate()
        hollow.wait()


if __name__ == "__main__":
    main()
