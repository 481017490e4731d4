#!/usr/bin/env python3
"""Runs bimetal-validate on the GPUs of this machine and writes a report; dev/gpu-check calls it."""

import argparse
import datetime
import json
import pathlib
import re
import shutil
import subprocess
import sys

VENDORS = ["nvidia", "amd"]
BUDGETS = {"L0": 5, "L1": 60, "L2": 600}  # seconds
# The vendors' own words on the same machine: name, command, seconds.
TOOLS = {
    "nvidia": [
        ("nvidia-smi", ["nvidia-smi", "--query-gpu=name,uuid,driver_version,pcie.link.gen.current,"
                        "pcie.link.width.current,clocks.max.sm,clocks.max.mem,power.limit,memory.total",
                        "--format=csv"], 30),
        ("nvidia-smi-nvlink", ["nvidia-smi", "nvlink", "--status"], 30),
        ("nvbandwidth", ["nvbandwidth"], 300),
    ],
    "amd": [
        ("amd-smi", ["amd-smi", "static", "--json"], 60),
        ("rocm-smi", ["rocm-smi", "--showproductname", "--showdriverversion"], 30),
        ("rocm-bandwidth-test", ["rocm-bandwidth-test", "-a"], 300),
    ],
}
# Tests of nvbandwidth that measure what a check of ours measures.
NVBANDWIDTH = {
    "host_to_device_memcpy_ce": "host-to-device",
    "device_to_host_memcpy_ce": "device-to-host",
    "device_to_device_memcpy_write_ce": "peer-to-peer",
    "device_local_copy": "hbm-copy",
}


def run(command, seconds):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        return 124, (late.stdout or b"").decode(errors="replace"), f"no answer within {seconds} s"


def validate(args, vendor, level):
    code, text, errors = run([args.validate, "--vendor", vendor, "--level", level, "--stress", str(args.stress),
                              "--timeout", str(BUDGETS[level])], BUDGETS[level] + 30)
    (args.out / f"{vendor}-{level}.jsonl").write_text(text)
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            errors += f"\nno JSON: {line}"
    return {"vendor": vendor, "level": level, "exit": code, "lines": lines, "errors": errors.strip()}


def has_device(result):
    return any(line.get("type") == "run" and line.get("backend") in ("cuda", "hip") for line in result["lines"])


def vendor_figures(text):
    """Lowest and highest figure of each nvbandwidth matrix that one of our checks measures too, in GB/s."""
    figures = {}
    for block in re.split(r"\nRunning ", "\n" + text):
        check = NVBANDWIDTH.get(block.split(".", 1)[0].strip())
        rows = [row.split()[1:] for row in block.splitlines() if re.match(r"\s*\d+\s+\S*\d\.\d|\s*\d+\s+N/A", row)]
        values = [float(v) for row in rows for v in row if re.fullmatch(r"\d+\.\d+", v)]
        if check and values:
            figures[check] = {"lowest": min(values), "highest": max(values)}
    return figures


def vendor_tools(vendor, out):
    found = {}
    for name, command, seconds in TOOLS[vendor]:
        if shutil.which(command[0]) is None:
            found[name] = "not installed"
            continue
        code, text, errors = run(command, seconds)
        (out / f"{vendor}-{name}.txt").write_text(text + errors)
        found[name] = f"exit {code}"
        if name == "nvbandwidth" and code == 0:
            found["figures"] = vendor_figures(text)
    return found


def table(report):
    rows = [f"gpu-check {report['time']}: {report['verdict']}", ""]
    for result in report["results"]:
        verdicts = [line for line in result["lines"] if line.get("type") == "verdict"]
        rows.append(f"{result['vendor']} {result['level']}: exit {result['exit']}, {len(verdicts)} verdicts"
                    + (f" ({result['errors']})" if result["errors"] else ""))
        figures = report["tools"].get(result["vendor"], {}).get("figures", {})
        for v in verdicts:
            theirs = figures.get(v["check"])
            beside = f"   vendor {theirs['lowest']:.1f}..{theirs['highest']:.1f}" if theirs else ""
            rows.append(f"  {v['check']:18} {v['device'][:20]:20} {v['verdict']:12} {v['value']:>14} {v['unit']:12}"
                        f"{beside}")
            rows.append(f"      {v['evidence']}")
    for vendor, tools in report["tools"].items():
        rows += [f"{vendor} {name}: {state}" for name, state in tools.items() if name != "figures"]
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--validate", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--levels", default="L0,L1,L2")
    parser.add_argument("--stress", type=int, default=60)
    args = parser.parse_args()
    levels = args.levels.split(",")
    if not set(levels) <= set(BUDGETS):
        parser.error("--levels takes L0, L1 and L2")
    results, tools, absent = [], {}, []
    for vendor in VENDORS:
        first = validate(args, vendor, "L0")
        if not has_device(first):
            reason = next((line["evidence"] for line in first["lines"] if line.get("type") == "verdict"),
                          first["errors"])
            absent.append(f"{vendor}: {reason}")
            continue
        tools[vendor] = vendor_tools(vendor, args.out)
        results += [first if level == "L0" else validate(args, vendor, level) for level in levels]
    if not results:
        print("no GPU of this machine answers, so nothing was validated:", *absent, sep="\n  ", file=sys.stderr)
        return 2
    codes = [result["exit"] for result in results]
    status = 1 if 1 in codes else (2 if any(codes) else 0)
    report = {"time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "program": run([args.validate, "--version"], 10)[1], "absent": absent, "tools": tools,
              "results": results,
              "verdict": {0: "every level passed", 1: "a check failed", 2: "inconclusive"}[status]}
    (args.out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    (args.out / "report.txt").write_text(table(report))
    print(table(report))
    print(f"stored in {args.out}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
