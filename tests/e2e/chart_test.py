#!/usr/bin/env python3
"""The chart's whole life on a real cluster: an upgrade in which a CRD gains a field, and an uninstall that leaves
nothing but the CRDs. Last of the end-to-end tests."""

import pathlib
import shutil
import sys
import tempfile

import yaml

import cluster as c
from harness import CHART, run_all


def test_an_upgrade_brings_a_new_field_to_jobs_that_exist():
    c.need_cluster()
    c.fresh_namespace()
    c.apply(c.job("kept", command=("sleep", "--seconds", "600")))
    c.wait_state("kept", "Running", 90)
    with tempfile.TemporaryDirectory(prefix="bimetal-chart-") as folder:
        newer = pathlib.Path(folder) / "bimetal"
        shutil.copytree(CHART, newer)
        file = next(newer.glob("files/crds/*gpujobs.yaml"))
        crd = yaml.safe_load(file.read_text())
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["spec"]["properties"]["note"] = {"type": "string", "maxLength": 64}
        file.write_text(yaml.safe_dump(crd))
        c.install(chart=newer)
    c.kubectl("patch", "gpujob", "kept", "-n", c.TEAM, "--type", "merge", "-p", '{"spec":{"note":"new"}}')
    assert c.get("gpujob", "kept", "-n", c.TEAM)["spec"]["note"] == "new"
    assert c.status("kept")["state"] == "Running", "the job lives through it"


def test_uninstall_leaves_nothing_but_the_crds_and_the_users_objects():
    c.need_cluster()
    c.uninstall()
    for node in c.get("nodes")["items"]:
        ours = [t for t in node["spec"].get("taints", []) if t["key"].startswith("bimetal.dev/")]
        labels = [k for k in node["metadata"]["labels"] if k.startswith("bimetal.dev/")]
        assert not ours and not labels, (node["metadata"]["name"], ours, labels)
    left = []
    for kind in ("deployments", "daemonsets", "jobs", "pods", "services", "secrets", "configmaps", "leases",
                 "serviceaccounts", "roles", "rolebindings"):
        left += [f"{kind}/{o['metadata']['name']}" for o in c.get(kind, "-n", c.SYSTEM)["items"]
                 if "bimetal" in o["metadata"]["name"] and not o["metadata"].get("deletionTimestamp")]
    for kind in ("clusterroles", "clusterrolebindings", "priorityclasses", "validatingadmissionpolicies",
                 "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"):
        left += [f"{kind}/{o['metadata']['name']}" for o in c.get(kind)["items"]
                 # "bimetal:..." are the local cluster's own.
                 if o["metadata"]["name"].startswith("bimetal-")]
    assert not left, left
    assert len([o for o in c.get("crds")["items"] if o["spec"]["group"] == "bimetal.dev"]) == 7
    assert c.get("gpujob", "kept", "-n", c.TEAM), "the user's job is kept"


def test_after_uninstall_nothing_of_ours_blocks_a_deletion():
    c.need_cluster()
    c.kubectl("delete", "gpujobs", "--all", "-n", c.TEAM, "--wait", "--timeout=60s")
    c.kubectl("delete", "namespace", c.TEAM, "--wait", "--timeout=90s")
    c.kubectl("delete", "gpunodes,gpupools,gpuqueues,pricebooks", "--all", "--wait", "--timeout=60s")


if __name__ == "__main__":
    sys.exit(run_all(globals()))
