#!/usr/bin/env python3
"""Rates of the host back end beside the machine's own; dev/bench runs it with two programs."""

import argparse
import json
import os
import statistics
import subprocess
import sys

HOST_THREADS = 4  # kHostMaxThreads of kernels/device/host/host_backend.h
CHECKS = ["hbm-copy", "hbm-scale", "hbm-add", "hbm-triad", "hbm-dot", "host-to-device", "device-to-host"]
ARRAY = 71581696  # what the host back end takes of its 256 MiB for each of three arrays
BAR = 0.8


def stream(program):
    threads = min(os.cpu_count() or 1, HOST_THREADS)
    done = subprocess.run([program, str(threads), str(ARRAY)], capture_output=True, text=True, check=True)
    return {name: (float(best), float(median)) for name, best, median in map(str.split, done.stdout.splitlines())}


def ours(program):
    done = subprocess.run([program, "--backend", "host", "--checks", ",".join(CHECKS)], capture_output=True,
                          text=True, check=False)
    verdicts = [json.loads(line) for line in done.stdout.splitlines()]
    found = {v["check"]: v for v in verdicts if v["type"] == "verdict"}
    for check in CHECKS:
        if "distribution" not in found.get(check, {}):
            sys.exit(f"{check}: {found.get(check, {}).get('evidence', 'no verdict')}")
    return {check: found[check]["distribution"] for check in CHECKS}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--validate", required=True)
    parser.add_argument("--stream", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    # In turns: what else runs on the machine then weighs on both alike. Compared are the best
    # repetitions of each side, as STREAM has it.
    rounds = [(stream(args.stream), ours(args.validate)) for _ in range(args.rounds)]
    print(f"{'':16} {'best':>8} {'median':>8}  GB/s, {args.rounds} rounds", file=sys.stderr)
    for name in ("memcpy", "triad"):
        best = max(r[0][name][0] for r in rounds)
        median = statistics.median(r[0][name][1] for r in rounds)
        print(f"machine {name:8} {best:8.2f} {median:8.2f}", file=sys.stderr)
    for check in CHECKS:
        best = max(r[1][check]["max"] for r in rounds)
        median = statistics.median(r[1][check]["median"] for r in rounds)
        print(f"{check:16} {best:8.2f} {median:8.2f}", file=sys.stderr)
    triad = max(r[1]["hbm-triad"]["max"] for r in rounds)
    ratio = triad / max(r[0]["triad"][0] for r in rounds)
    print(f"kernels triad {ratio:.2f} of-stream bar {BAR}", flush=True)
    return 0 if ratio >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
