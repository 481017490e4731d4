#!/usr/bin/env python3
"""The fault campaign through real pods: each class once, on the simulated nodes of a local cluster.

It takes the cluster of BIMETAL_TEST_CLUSTER and BIMETAL_TEST_KUBECONFIG as tests/e2e does, with the chart installed and all
nodes proven (dev/bench truth-pods makes one), puts each fault into a node's machine, and watches what the GPUNode says. The
pure half, with 25 seeds a class, is the program bimetal-truth. The last line is "truth-pods N %"; exits 1 unless it is 100."""

import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile
import time

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

import cluster as c  # noqa: E402

# By vendor; each class takes the next free node of its vendor.
NODES = {"nvidia": ["node-1", "node-2"], "amd": ["node-3", "node-4"]}
DESCRIPTIONS = {"nvidia": "nvidia-h100-8", "amd": "amd-mi300x-8"}
DEVICES = 8
SETTLE = 120  # seconds that one transition may take on two busy processors
QUIET = 12    # seconds that must pass without a sign where nothing may happen


class Node:
    """One node and its machine."""

    def __init__(self, name, vendor):
        self.name, self.vendor = name, vendor
        self.folder = c.machine_folder(name)
        self.boots = 1

    def machine(self, *args):
        return c.run(c.BINARIES / "bimetal-machine", args[0], self.folder, *args[1:])

    def fault(self, device, kind, **options):
        words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
        self.machine("fault", "--device", str(device), "--kind", kind, *words)

    def rebuild(self, change=lambda text: text):
        text = (c.ROOT / "tests" / "machines" / f"{DESCRIPTIONS[self.vendor]}.yaml").read_text(encoding="utf-8")
        changed = change(text)
        yaml.safe_load(changed)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(changed)
            file.flush()
            c.run(c.BINARIES / "bimetal-machine", "build", file.name, self.folder, "--node", self.name)

    def replace(self, before, after):
        def change(text):
            assert before in text, f"{DESCRIPTIONS[self.vendor]} has no {before}"
            return text.replace(before, after)
        self.rebuild(change)

    def kernel_line(self, text):
        with open(self.folder / "dev" / "kmsg", "a", encoding="utf-8") as log:
            log.write(f"3,{900 + int(time.time()) % 100000},900000000,-;{text}\n")

    def revalidate(self):
        word = f"campaign-{time.time()}"
        c.kubectl("patch", "gpunode", self.name, "--type", "merge", "-p", f'{{"spec":{{"revalidate":"{word}"}}}}')

    def status(self):
        return (c.get("gpunode", self.name) or {}).get("status", {})

    def vendor_status(self, status):
        return next((v for v in status.get("vendors", []) if v["vendor"] == self.vendor), {})

    def ids(self, status):
        return [d["id"] for d in sorted(status.get("devices", []), key=lambda d: d.get("pciAddress", ""))]

    def open(self, status):
        return {d["id"] for d in status.get("devices", []) if d.get("open")}

    def failed(self, status):
        return {r["id"] for r in self.vendor_status(status).get("records", []) if r.get("failedCheck")}

    def is_sound(self):
        status = self.status()
        return status.get("phase") == "Admitted" and len(self.open(status)) == DEVICES and not self.failed(status)

    def reboot(self):
        """A sound machine in a boot that never was before; the agent is begun anew by it, as everything there is."""
        self.rebuild()
        self.boots += 1
        for _ in range(self.boots):  # building a machine sets it back to its first boot
            self.machine("reboot")
        boot = (self.folder / "proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        c.kubectl("-n", c.SYSTEM, "delete", "pod", "-l", "app.kubernetes.io/component=agent",
                  "--field-selector", f"spec.nodeName={self.name}", "--grace-period=1", "--wait=false")
        c.wait_for(f"{self.name} reports its new boot", lambda: self.status().get("bootID") == boot, SETTLE)

    def repair(self):
        """Back to a sound machine and a node that says so."""
        self.reboot()  # old Xids go with the old boot
        self.revalidate()
        c.wait_for(f"{self.name} is sound again", self.is_sound, 2 * SETTLE)
        c.wait_for(f"{self.name} offers its devices", lambda: c.offered(self.name, self.vendor) == DEVICES, SETTLE)


# What must come of a class ------------------------------------------------------------------------

def expect_fail(node, before, device):
    """The kernels prove the device wrong: it alone is quarantined."""
    c.wait_for(f"{node.name}: {device} is quarantined", lambda: node.failed(node.status()) == {device}, SETTLE)
    assert device not in node.open(node.status()), "the failed device is open"
    c.wait_for("the kubelet offers it no more", lambda: c.offered(node.name, node.vendor) < DEVICES, SETTLE)


def expect_shut(node, before, device):
    """The device is shut, and none is held to be wrong."""
    c.wait_for(f"{node.name}: {device} is shut", lambda: device not in node.open(node.status()), SETTLE)
    c.wait_for("the kubelet offers it no more", lambda: c.offered(node.name, node.vendor) < DEVICES, SETTLE)
    assert not node.failed(node.status()), f"quarantined: {node.failed(node.status())}"


def expect_prove_again(node, before, device):
    """A run begun after the fault decides."""
    last = node.vendor_status(before).get("lastRun")
    c.wait_for(f"{node.name} is run again", lambda: node.vendor_status(node.status()).get("lastRun") != last, SETTLE)
    assert not node.failed(node.status()), f"quarantined: {node.failed(node.status())}"


def expect_sound(node, before, device):
    """Nothing happens."""
    end = time.monotonic() + QUIET
    while time.monotonic() < end:
        assert node.is_sound(), node.status().get("message")
        time.sleep(1)


def validated(inject):
    """A fault that only a run can see: one is asked for."""
    def act(node, device):
        inject(node, device)
        node.revalidate()
    return act


def xid(code):
    return lambda node, device: node.fault(device, "xid", code=code)


def classes():
    """(name, vendor, expectation, what to do to the node)."""
    out = []
    for vendor in NODES:
        for bit, stuck in ((3, 1), (60, 0)):
            out.append((f"memory bit {bit} stuck at {stuck}, {vendor}", vendor, expect_fail, validated(
                lambda n, d, bit=bit, stuck=stuck: n.fault(d, "memory", offset=65536, bit=bit, stuck=stuck))))
        for unit in (0, 100):
            out.append((f"unit {unit} computes wrongly, {vendor}", vendor, expect_fail, validated(
                lambda n, d, unit=unit: n.fault(d, "compute", unit=unit))))
        out.append((f"memory and compute of one device, {vendor}", vendor, expect_fail, validated(
            lambda n, d: (n.fault(d, "compute", unit=7), n.fault(d, "memory", offset=8, bit=1, stuck=1)))))
        out.append((f"uncorrectable memory errors, {vendor}", vendor, expect_shut,
                    lambda n, d: n.fault(d, "ecc", count=3)))
        out.append((f"the device is gone, {vendor}", vendor, expect_shut, lambda n, d: n.fault(d, "vanish")))
        out.append((f"a reboot, {vendor}", vendor, expect_prove_again, lambda n, d: n.reboot()))
    out.append(("the last unit of 304", "amd", expect_fail, validated(lambda n, d: n.fault(d, "compute", unit=303))))
    out.append(("every vendor call hangs", "nvidia", expect_shut, lambda n, d: n.fault(d, "hang")))
    for code in (48, 62, 63, 64, 74, 79, 94, 95, 119, 120, 140):
        out.append((f"Xid {code}", "nvidia", expect_prove_again, xid(code)))
    for code in (13, 31, 43, 45):
        out.append((f"Xid {code}, a program's", "nvidia", expect_sound, xid(code)))
    for name, text in (("a reset failed", "GPU reset(2) failed"),
                       ("an uncorrectable error by RAS", "1 uncorrectable hardware errors detected in umc block")):
        out.append((name, "amd", expect_prove_again, lambda n, d, text=text: n.kernel_line(
            f"amdgpu {pci_of(n, d)}: amdgpu: {text}")))
    out.append(("another driver, nvidia", "nvidia", expect_prove_again, lambda n, d: n.replace("565.57.01", "570.86.10")))
    out.append(("another driver, amd", "amd", expect_prove_again, lambda n, d: n.replace("6.12.12", "6.14.14")))
    out.append(("another runtime", "amd", expect_prove_again, lambda n, d: n.replace("6.4.0", "7.0.1")))
    out.append(("another VBIOS", "nvidia", expect_prove_again, lambda n, d: n.replace("96.00.74.00.01", "96.00.99.00.02")))
    out.append(("another firmware", "amd", expect_prove_again, lambda n, d: n.replace("0x000000a6", "0x000000b1")))
    out.append(("another kernel", "amd", expect_prove_again, lambda n, d: n.replace("6.8.0-90", "6.8.0-94")))
    out.append(("another memory partition", "amd", expect_prove_again, lambda n, d: n.replace("NPS1", "NPS4")))
    out.append(("MIG is switched on", "nvidia", expect_gone, lambda n, d: n.rebuild(lambda text: text.rstrip() + (
        "\n    mig:\n      - {profile: 3g.40gb, memoryBytes: 42412802048, computeUnits: 60}\n"
        "      - {profile: 3g.40gb, memoryBytes: 42412802048, computeUnits: 60}\n"))))
    out.append(("another compute partition", "amd", expect_gone, lambda n, d: n.replace(
        "{compute: SPX, memory: NPS1}", "{compute: CPX, memory: NPS1, count: 8}")))
    return out


def expect_gone(node, before, device):
    """The whole devices are gone; what came in their place has proven itself."""
    old = set(node.ids(before))
    c.wait_for(f"{node.name} shows other devices", lambda: not old & {
        d["id"] for d in node.status().get("devices", []) if d.get("open")}, SETTLE)
    c.wait_for("and proves them", lambda: node.status().get("phase") == "Admitted"
               and len(node.open(node.status())) > DEVICES, 2 * SETTLE)


def pci_of(node, device):
    text = (c.ROOT / "tests" / "machines" / f"{DESCRIPTIONS[node.vendor]}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["gpus"][0]["pci"][device]


def run_class(node, number, entry):
    """None where all is as it must be, else what is wrong."""
    name, _, expect, inject = entry
    try:
        c.wait_for(f"{node.name} is sound", node.is_sound, SETTLE)
        before = node.status()
        device = number % DEVICES
        target = node.ids(before)[device]
        inject(node, device)
        expect(node, before, target)
        problem = None
    except (AssertionError, subprocess.CalledProcessError, SystemExit, KeyError) as error:
        problem = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
    try:
        node.repair()
    except AssertionError as error:
        problem = problem or f"no way back: {str(error).splitlines()[0]}"
    print(f"  {name}: {problem or 'right'}", file=sys.stderr, flush=True)
    return name, problem


def run_vendor(vendor, entries):
    """The vendor's classes, dealt to its nodes, which work side by side."""
    nodes = [Node(name, vendor) for name in NODES[vendor]]
    results = []
    with concurrent.futures.ThreadPoolExecutor(len(nodes)) as pool:
        def work(index):
            return [run_class(nodes[index], number, entry)
                    for number, entry in enumerate(entries) if number % len(nodes) == index]
        for done in pool.map(work, range(len(nodes))):
            results += done
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="classes whose name has this text")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--setup", action="store_true", help="first give the nodes their machines and install the chart")
    arguments = parser.parse_args()
    chosen = [entry for entry in classes() if arguments.only in entry[0]]
    if arguments.list:
        print("\n".join(entry[0] for entry in chosen))
        return 0
    c.need_cluster()
    nodes = [Node(name, vendor) for vendor, names in NODES.items() for name in names]
    if arguments.setup:
        c.build_machines({node.name: DESCRIPTIONS[node.vendor] for node in nodes})
        c.install()
        for node in nodes:
            c.wait_for(f"{node.name} is sound", node.is_sound, 3 * SETTLE)
    else:
        for node in nodes:
            node.repair()
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(NODES)) as pool:
        results = [result for done in pool.map(
            lambda vendor: run_vendor(vendor, [e for e in chosen if e[1] == vendor]), NODES) for result in done]
    for name, problem in sorted(results, key=lambda result: [e[0] for e in chosen].index(result[0])):
        print(f"{name:56} {'right' if problem is None else 'WRONG: ' + problem}")
    right = sum(problem is None for _, problem in results)
    print(f"{len(results)} classes through real pods, {right} right; {time.monotonic() - start:.0f} s")
    share = 10000 * right // max(1, len(results))
    print(f"truth-pods {share // 100} %" if share % 100 == 0 else f"truth-pods {share / 100:.2f} %")
    return 0 if right == len(results) > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
