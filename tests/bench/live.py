#!/usr/bin/env python3
"""The live benches: jobs on a real control plane with hollow nodes. dev/bench runs it.

Each prints what is worth knowing on stderr and one line on stdout: NAME VALUE UNIT, and what it is held against. It exits 1
where a bar or a secondary condition is missed. At another --scale than 1 the sizes are multiplied by it, and the
bars that belong to the full size are shown and not judged.
"""

import argparse
import math
import sys
import time

import bursts
import first
import gangs
import rig
import storm
from api import say

BENCHES = {
    "first": first.first, "first-gang": first.first_gang, "storm": storm.storm,
    "p5": bursts.p5, "p6": gangs.p6, "p7": gangs.p7, "p10": gangs.p10, "p14": gangs.p14, "p17": gangs.p17, "p18": bursts.p18,
}


class Run:
    """One bench: its sizes, its cluster, and what it found."""

    def __init__(self, name, args):
        self.name, self.scale, self.peer = name, args.scale, args.peer
        self.cluster = rig.Cluster(args.cluster, args.binaries, rig.ROOT / "build" / "bench-logs" / name)
        self.missed = []
        self.parts = []

    def size(self, full, least=1):
        return max(least, math.ceil(full * self.scale))

    def require(self, good, text):
        """A secondary condition."""
        say(("ok:     " if good else "MISSED: ") + text)
        if not good:
            self.missed.append(text)

    def bar(self, good, text):
        """A bar that belongs to the full size."""
        if self.scale == 1:
            self.require(good, text)
        else:
            say(f"{'within' if good else 'over'} at {self.scale:g} of the size, not judged: {text}")

    def note(self, text):
        """Goes on to the last line."""
        self.parts.append(text)

    def finish(self, value, unit, bar):
        scale = "" if self.scale == 1 else f" scale {self.scale:g}"
        print(f"{self.name} {value} {unit} bar {bar}{scale} {' '.join(self.parts)}".rstrip(), flush=True)
        return not self.missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", default="bench", help="name of the local cluster, which is started and taken down")
    parser.add_argument("--binaries", default=str(rig.ROOT / "build" / "release" / "bin"))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--peer", choices=["kueue"], help="measure this one, too, just before (p5, p6, p18)")
    parser.add_argument("names", nargs="+", choices=sorted(BENCHES), metavar="NAME")
    args = parser.parse_args()
    rig.end_on_signal()
    good = True
    for name in args.names:
        begin = time.monotonic()
        with open("/proc/loadavg", encoding="utf-8") as load:
            say(f"{name}: begins, load of the machine {' '.join(load.read().split()[:3])}")
        try:
            good = BENCHES[name](Run(name, args)) and good
        except SystemExit as error:  # the others are run all the same, unless we were told to end
            if error.code == rig.TOLD_TO_END:
                raise
            say(f"{name}: {error.code}")
            good = False
        say(f"{name}: took {time.monotonic() - begin:.0f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
