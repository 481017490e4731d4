#!/usr/bin/env python3
"""The CRDs, the admission policies and Helm's life cycle on a real kube-apiserver with its etcd.

There are no controllers, no scheduler and no nodes here: only what the API server itself says.
"""

import copy
import pathlib
import shutil
import sys
import tempfile

import yaml

from harness import CHART, NAMESPACE, ROOT, Skip, api_server, eventually, run_all

OPERATOR = f"system:serviceaccount:{NAMESPACE}:bimetal-operator"
AGENT = f"system:serviceaccount:{NAMESPACE}:bimetal-agent"
KINDS = ["gpujobs", "gpunodes", "gpupools", "gpuqueues", "pricebooks", "validationprofiles"]
# No kubelet could run the cleanup's pod here.
INSTALL = ["-n", NAMESPACE, "--set", "uninstall.cleanup=false"]

server = None


def job(name="job"):
    return {
        "apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "variants": [
                {"name": "cuda", "vendor": "nvidia", "image": "a:b"},
                {"name": "rocm", "vendor": "amd", "image": "a:c", "devicesPerPod": 2,
                 "env": [{"name": "A", "value": "b"},
                         {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            ],
            "roles": [{"name": "worker", "replicas": 4, "template": {"spec": {
                "securityContext": {"runAsUser": 4},
                "containers": [
                    {"name": "main", "livenessProbe": {"exec": {"command": ["a"]}},
                     "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
                     "ports": [{"containerPort": 80, "hostIP": "10.0.0.1"}]},
                    {"name": "side", "image": "x"}]}}}],
        },
    }


def pod(name, gpu="nvidia.com/gpu", **spec):
    container = {"name": "main", "image": "x"}
    if gpu:
        container["resources"] = {"limits": {gpu: "1"}}
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {}},
            "spec": {"containers": [container], **spec}}


def refused(document, text, *args, verb="create"):
    done = server.apply(document, *args, check=False, verb=verb)
    assert done.returncode != 0, f"accepted: {document}"
    assert text in done.stderr, f"no '{text}' in: {done.stderr}"


def accepted(document, *args, verb="create"):
    server.apply(document, *args, verb=verb)


def test_helm_installs_the_chart_and_the_kinds_are_established():
    server.kubectl("create", "namespace", NAMESPACE)
    server.helm("install", "bimetal", CHART, *INSTALL)
    for kind in KINDS:
        server.kubectl("wait", "--for=condition=Established", f"crd/{kind}.bimetal.dev",
                       "--timeout=60s")
        conditions = server.get("crd", f"{kind}.bimetal.dev")["status"]["conditions"]
        wrong = [c for c in conditions if c["type"] == "NonStructuralSchema"]
        assert not wrong, wrong
    # Discovery follows a moment later.
    eventually(lambda: server.kubectl("get", "gj,gn,gp,gq,vp,pb", "-A"))
    assert server.kubectl("get", "gpu", "-A", check=False).returncode == 0


def test_explain_reads_well():
    for path, words in {
            "gpujob": "A training or batch job", "gpujob.spec.variants": "Devices for each pod",
            "gpujob.spec.roles.template.spec.containers": "takes its image from the chosen variant",
            "gpunode.status.devices": "Stable id of the device", "gpupool.spec": "enum: nvidia, amd",
            "gpuqueue.spec.quotas": "What the queue and those below it may hold", "pricebook.spec.prices": "Electricity",
            "validationprofile.spec": "How long a pass counts"}.items():
        done = server.kubectl("explain", path)
        text = " ".join(done.stdout.split())
        assert words in text, f"{path}: {done.stdout}"
        assert "<no description>" not in text, f"{path}: {done.stdout}"


def test_a_job_keeps_every_field_and_gets_its_defaults():
    accepted(job())
    spec = server.get("gpujob", "job")["spec"]
    assert spec["queueName"] == "default"
    assert spec["selection"] == {"policy": "InOrder", "switchOnRestart": "IfPortable"}
    assert spec["retry"] == {"limit": 2, "backoff": "5s"} and spec["preemption"] == "Allowed"
    assert [v["devicesPerPod"] for v in spec["variants"]] == [1, 2]
    assert spec["variants"][1]["env"] == job()["spec"]["variants"][1]["env"]
    sent = job()["spec"]["roles"][0]["template"]
    sent["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"
    assert spec["roles"][0]["template"] == sent
    short = job("short")
    short["spec"] = {"variants": short["spec"]["variants"][:1], "roles": [{"name": "w"}]}
    accepted(short)
    assert server.get("gpujob", "short")["spec"]["roles"] == [{"name": "w", "replicas": 1}]
    server.apply({"apiVersion": "bimetal.dev/v1alpha1", "kind": "GPUQueue",
                  "metadata": {"name": "empty"}})
    assert server.get("gpuqueue", "empty")["spec"] == {
        "order": "Backfill", "stopPolicy": "None",
        "preemption": {"withinQueue": "Never", "reclaim": "Never"}}
    server.apply({"apiVersion": "bimetal.dev/v1alpha1", "kind": "ValidationProfile",
                  "metadata": {"name": "empty"}})
    assert server.get("validationprofile", "empty")["spec"] == {
        "level": "L1", "timeout": "2m0s", "retries": 5, "degraded": "Admit", "degradedPercent": 5,
        "quarantine": "Device", "pathCheck": "Run", "onFault": "Nothing",
        "breakers": {"maxRuns": 16, "maxShutPercent": 50, "maxSameFailures": 3}}


def test_bad_jobs_are_refused_with_field_and_remedy():
    gpu_remedy = "set devicesPerPod in the variants"
    main = ("spec", "roles", 0, "template", "spec", "containers", 0)
    pods = ("spec", "roles", 0, "template", "spec")
    cases = [
        (("spec", "variants", 1, "name"), "cuda", "spec.variants[1]: Duplicate value"),
        (("spec", "variants"), [], "spec.variants in body should have at least 1 items"),
        (("spec", "variants", 0, "vendor"), "intel", 'supported values: "nvidia", "amd"'),
        (("spec", "variants", 0, "devicesPerPod"), 0, "spec.variants[0].devicesPerPod"),
        (("spec", "variants", 0, "deviceSelector"), {"minMemory": "-1Gi"}, "minMemory"),
        (("spec", "variants", 0, "deviceSelector"), {"minMemory": -1}, "minMemory"),
        (("spec", "variants", 0, "deviceSelector"), {"minMemory": "NaN"}, "minMemory"),
        (("spec", "variants", 0, "deviceSelector"), {"minMemory": "1e400Gi"}, "minMemory"),
        (("spec", "roles"), [], "spec.roles in body should have at least 1 items"),
        (("spec", "roles", 0, "replicas"), 0, "spec.roles[0].replicas"),
        (("spec", "roles", 0, "replicas"), 10000, "less than or equal to 8192"),
        (("spec", "roles", 0, "replicas"), 2**31, "spec.roles[0].replicas"),
        (("spec", "roles", 0, "replicas"), 2**63 - 1, "spec.roles[0].replicas"),
        (main + ("resources", "limits", "nvidia.com/gpu"), 1, gpu_remedy),
        (main + ("resources", "limits", "nvidia.com/mig-1g.5gb"), 1, gpu_remedy),
        (main + ("resources",), {"requests": {"amd.com/gpu": "1"}}, gpu_remedy),
        (pods + ("initContainers",),
         [{"name": "i", "image": "x", "resources": {"limits": {"amd.com/gpu": 1}}}], gpu_remedy),
        (pods + ("nodeName",), "node-1", "use spec.nodeSelector"),
        (main + ("image",), "x", "set image in the variants"),
        (pods + ("containers", 1), {"name": "side"}, "needs an image of its own"),
        (pods + ("initContainers",), [{"name": "i"}], "needs an image"),
        (("metadata", "name"), "x" * 41, "at most 40 characters"),
        (("metadata", "name"), "1job", "must begin with a letter"),
        (("metadata", "name"), "a.b", "must begin with a letter"),
        (("spec", "retry"), {"limit": -1}, "spec.retry.limit"),
        (("spec", "surprise"), 1, 'unknown field "spec.surprise"'),
    ]
    for path, value, text in cases:
        bad = job("bad")
        place = bad
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        refused(bad, text)
    assert server.kubectl("get", "gpujob", "bad", check=False).returncode != 0


def test_what_was_placed_cannot_be_changed_afterwards():
    for change in (lambda s: s["variants"][0].update(image="z"),
                   lambda s: s["roles"][0].update(replicas=5),
                   lambda s: s.update(queueName="other"),
                   lambda s: s["roles"][0]["template"]["spec"]["securityContext"].update(
                       runAsUser=5)):
        changed = job()
        change(changed["spec"])
        refused(changed, "delete the job and create a new one", verb="replace")
    changed = job()
    changed["spec"].update(suspend=True, priorityClassName="high", retry={"limit": 3})
    accepted(changed, verb="replace")
    server.kubectl("delete", "gpujob", "--all")


def test_status_is_written_only_through_its_subresource():
    document = job("status")
    document["status"] = {"state": "Completed"}
    accepted(document)
    assert "status" not in server.get("gpujob", "status")
    server.kubectl("patch", "gpujob", "status", "--subresource=status", "--type=merge", "-p",
                   '{"status": {"state": "Running", "attempt": 1, "usage": {"cost": "1 USD"}}}')
    got = server.get("gpujob", "status")
    assert got["status"]["state"] == "Running" and got["metadata"]["generation"] == 1
    listing = server.kubectl("get", "gj", "status").stdout
    assert "Running" in listing and "1 USD" in listing, listing
    server.kubectl("delete", "gpujob", "status")


def test_bad_pools_queues_and_prices_are_refused():
    def of(kind, spec):
        return {"apiVersion": "bimetal.dev/v1alpha1", "kind": kind, "metadata": {"name": "bad"},
                "spec": spec}
    price = {"vendor": "amd", "model": "m", "from": "2026-01-01T00:00:00Z", "hardwarePerHour": "1"}
    refused(of("GPUPool", {"vendor": "intel"}), "supported values")
    refused(of("GPUPool", {"vendor": "amd", "gate": "Off"}), "spec.gate")
    refused(of("GPUQueue", {"quotas": [{"deviceClass": "amd", "limit": 1}] * 2}), "Duplicate value")
    for quota, why in (({"limit": -1}, "limit"),
                       ({"guaranteed": 2, "limit": 1}, "guaranteed must be at most limit"),
                       ({"guaranteed": 2, "lendingLimit": 3}, "lendingLimit must be at most"),
                       ({"limit": 3, "lendingLimit": 3}, "lendingLimit must be at most"),
                       ({}, "set guaranteed, limit or both"),
                       ({"limit": 1000001}, "limit")):
        refused(of("GPUQueue", {"quotas": [{"deviceClass": "amd", **quota}]}), why)
    refused(of("GPUQueue", {"order": "BestEffort", "starvationBound": "1h"}), "starvationBound")
    refused(of("GPUQueue", {"starvationBound": "soon"}), "spec.starvationBound")
    refused(of("GPUQueue", {"fairShare": {"weight": -1}}), "spec.fairShare.weight")
    refused(of("GPUQueue", {"preemption": {"reclaim": "Always"}}), "spec.preemption.reclaim")
    refused(of("GPUQueue", {"stopPolicy": "Drain"}), "spec.stopPolicy")
    refused(of("ValidationProfile", {"expiresAfter": "soon"}), "spec.expiresAfter")
    refused(of("PriceBook", {"currency": "usd", "prices": [price]}), "spec.currency")
    for wrong in ("-1", "1e9", "1.0000000001", "a", ""):
        refused(of("PriceBook", {"currency": "USD", "prices": [{**price, "hardwarePerHour": wrong}]}),
                "hardwarePerHour")
    refused(of("PriceBook", {"currency": "USD", "prices": [{**price, "from": "yesterday"}]}),
            "spec.prices[0].from")
    bare = {k: v for k, v in price.items() if k != "hardwarePerHour"}
    rented = {"pricePerHour": "2", "devices": 1}
    owned = {"capital": "1", "lifeMonths": 48, "devices": 8}
    for entry, why in ((bare, "exactly one of hardwarePerHour, owned and rented"),
                       ({**price, "rented": rented}, "exactly one of hardwarePerHour, owned and rented"),
                       ({**bare, "rented": rented, "energyPerHour": "1"}, "the rent includes electricity"),
                       ({**bare, "rented": rented, "purchase": "Owned"}, "purchase contradicts"),
                       ({**bare, "owned": {**owned, "residualPercent": 100}}, "residualPercent"),
                       ({**price, "energyPerHour": "1", "energyZone": "z"}, "the same electricity"),
                       ({**price, "assumedWatts": 500}, "no meaning without energyZone"),
                       ({**price, "to": price["from"]}, "to must be after from")):
        refused(of("PriceBook", {"currency": "USD", "prices": [entry]}), why)
    tariff = {"zone": "z", "from": price["from"], "perKilowattHour": "0.1"}
    for entry, why in (({**tariff, "pue": "0.9"}, "pue"), ({**tariff, "fromHour": 7}, "come together"),
                       ({**tariff, "to": tariff["from"]}, "to must be after from")):
        refused(of("PriceBook", {"currency": "USD", "prices": [price], "tariffs": [entry]}), why)
    pool = of("GPUPool", {"vendor": "amd"})
    accepted(pool)
    pool["spec"]["vendor"] = "nvidia"
    refused(pool, "vendor cannot be changed", verb="apply")
    server.kubectl("delete", "gpupool", "bad")


def test_samples_are_accepted():
    samples = sorted((ROOT / "manifests" / "samples").glob("*.yaml"))
    assert len(samples) >= 6
    for sample in samples:
        server.kubectl("apply", "--dry-run=server", "-f", sample)


def test_gpu_pods_cannot_pass_by_the_gate():
    server.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                  "metadata": {"name": "test-users"},
                  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                              "name": "cluster-admin"},
                  "subjects": [{"kind": "User", "name": "alice",
                                "apiGroup": "rbac.authorization.k8s.io"}]})
    everything = [{"operator": "Exists"}]
    by_key = [{"key": "bimetal.dev/unvalidated", "operator": "Exists", "effect": "NoSchedule"}]
    alice = ("--as", "alice", "--dry-run=server")
    must_not = "must not tolerate the taint bimetal.dev/unvalidated"
    # The API server takes a moment to learn a policy.
    eventually(lambda: refused(pod("p", tolerations=everything), must_not, *alice))
    for gpu in ("nvidia.com/gpu", "amd.com/gpu"):
        refused(pod("p", gpu, tolerations=by_key), must_not, *alice)
        refused(pod("p", gpu, tolerations=[{"key": "bimetal.dev/unvalidated"}]), must_not, *alice)
        refused(pod("p", gpu, nodeName="node-1"), "must not set spec.nodeName", *alice)
        init = pod("p", None, tolerations=everything)
        init["spec"]["initContainers"] = [{"name": "i", "image": "x",
                                           "resources": {"limits": {gpu: 1}}}]
        refused(init, must_not, *alice)
    # Everybody else goes their way.
    accepted(pod("p"), *alice)
    accepted(pod("p", None, tolerations=everything, nodeName="node-1"), *alice)
    accepted(pod("p", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]), *alice)
    accepted(pod("p", tolerations=[{"operator": "Exists", "effect": "NoExecute"}]), *alice)
    zero = pod("p", tolerations=everything)
    zero["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "0"
    accepted(zero, *alice)
    system = pod("p", tolerations=everything)
    system["metadata"]["namespace"] = "kube-system"
    accepted(system, *alice)
    accepted(pod("p", tolerations=by_key), "--as", OPERATOR, "--dry-run=server")


def test_a_toleration_cannot_be_added_later():
    accepted(pod("later"), "--as", "alice")
    late = server.get("pod", "later")
    late["spec"]["tolerations"] = late["spec"].get("tolerations", []) + [{"operator": "Exists"}]
    refused(yaml.safe_dump(late), "must not tolerate", "--as", "alice", verb="replace")
    # Other changes of a pod that has such a toleration since before the policy are left alone.
    server.kubectl("label", "pod", "later", "a=b", "--as", "alice")
    server.kubectl("delete", "pod", "later", "--force", "--grace-period=0")


def test_only_the_operator_makes_and_marks_pods_of_jobs():
    mine = pod("mine", None)
    mine["metadata"]["labels"] = {"bimetal.dev/job-uid": "u", "bimetal.dev/attempt": "1"}
    mine["metadata"]["annotations"] = {"bimetal.dev/node": "node-1"}
    refused(mine, "only the operator makes pods with the label", "--as", "alice")
    validates = pod("validates", None)
    validates["metadata"]["labels"] = {"bimetal.dev/validates": "amd"}
    refused(validates, "only the operator makes pods with the label", "--as", "alice")
    accepted(mine, "--as", OPERATOR)
    only = "only the operator changes what begins with bimetal.dev/"
    for change in (("label", "bimetal.dev/job-uid-"), ("label", "bimetal.dev/attempt=2"),
                   ("label", "bimetal.dev/role=x"), ("annotate", "bimetal.dev/node=node-2")):
        done = server.kubectl(change[0], "--overwrite", "pod", "mine", change[1], "--as", "alice",
                              check=False)
        assert done.returncode != 0 and only in done.stderr, f"{change}: {done.stderr}"
    server.kubectl("label", "pod", "mine", "team=a", "--as", "alice")
    accepted(pod("plain", None), "--as", "alice")
    done = server.kubectl("label", "pod", "plain", "bimetal.dev/job-uid=u", "--as", "alice",
                          check=False)
    assert done.returncode != 0 and only in done.stderr, done.stderr
    server.kubectl("delete", "pod", "mine", "plain", "--force", "--grace-period=0", "--as", "alice")


def queued(name, queue="team", **spec):
    made = pod(name, **spec)
    made["metadata"]["labels"] = {"bimetal.dev/queue-name": queue}
    return made


def gates(name):
    return [g["name"] for g in server.get("pod", name)["spec"].get("schedulingGates", [])]


def remove_pods(*names):
    server.kubectl("delete", "pod", *names, "--force", "--grace-period=0", "--as", "alice")


def test_a_pod_that_names_a_queue_waits_behind_the_gate_and_no_other_does():
    def is_gated():
        accepted(queued("queued"), "--as", "alice")
        try:
            assert gates("queued") == ["bimetal.dev/queue"]
        finally:
            remove_pods("queued")
    eventually(is_gated)
    accepted(pod("plain"), "--as", "alice")
    assert gates("plain") == []
    both = queued("both", schedulingGates=[{"name": "other"}])
    accepted(both, "--as", "alice")
    assert sorted(gates("both")) == ["bimetal.dev/queue", "other"]
    by_hand = queued("by-hand", schedulingGates=[{"name": "bimetal.dev/queue"}])
    accepted(by_hand, "--as", "alice")
    assert gates("by-hand") == ["bimetal.dev/queue"]
    no_gpu = queued("no-gpu", gpu=None)
    accepted(no_gpu, "--as", "alice")
    assert gates("no-gpu") == ["bimetal.dev/queue"]
    accepted(queued("ours"), "--as", OPERATOR)
    assert gates("ours") == []
    system = queued("system")
    system["metadata"]["namespace"] = NAMESPACE
    accepted(system, "--as", "alice")
    assert "schedulingGates" not in server.get("pod", "system", "-n", NAMESPACE)["spec"]
    server.kubectl("delete", "pod", "system", "-n", NAMESPACE, "--force", "--grace-period=0")
    remove_pods("plain", "both", "by-hand", "no-gpu", "ours")


def test_nobody_leaves_the_queue_by_himself():
    accepted(queued("waits"), "--as", "alice")
    free = server.get("pod", "waits")
    del free["spec"]["schedulingGates"]
    refused(yaml.safe_dump(free), "only the operator takes the scheduling gate", "--as", "alice",
            verb="replace")
    labels = "stay as they were when the pod was made"
    notes = "only the operator writes the annotations"
    for change, text in ((("label", "bimetal.dev/queue-name-"), labels),
                         (("label", "bimetal.dev/queue-name=rich"), labels),
                         (("label", "bimetal.dev/pod-group=other"), labels),
                         (("annotate", "bimetal.dev/pod-group-size=1"), "stays as it was"),
                         (("annotate", "bimetal.dev/admitted-to=rich"), notes),
                         (("annotate", "bimetal.dev/node=node-1"), notes)):
        done = server.kubectl(change[0], "--overwrite", "pod", "waits", change[1], "--as", "alice",
                              check=False)
        assert done.returncode != 0 and text in done.stderr, f"{change}: {done.stderr}"
    server.kubectl("label", "pod", "waits", "team=a", "--as", "alice")
    pretends = queued("pretends")
    pretends["metadata"]["annotations"] = {"bimetal.dev/admitted-to": "team",
                                           "bimetal.dev/node": "node-1"}
    refused(pretends, notes, "--as", "alice")
    accepted(pod("late"), "--as", "alice")
    done = server.kubectl("label", "pod", "late", "bimetal.dev/queue-name=team", "--as", "alice",
                          check=False)
    assert done.returncode != 0 and labels in done.stderr, done.stderr
    remove_pods("waits", "late")


def workload(kind, name, labels=None, pod_labels=None, notes=None, pod_notes=None, **spec):
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": name}}}
    if kind == "StatefulSet":
        selector["serviceName"] = name
    restart = {"restartPolicy": "Never"} if kind == "Job" else {}
    return {"apiVersion": "batch/v1" if kind == "Job" else "apps/v1", "kind": kind,
            "metadata": {"name": name, "namespace": "default", "labels": labels or {},
                         "annotations": notes or {}},
            "spec": {**selector, **spec, "template": {
                "metadata": {"labels": {"app": name, **(pod_labels or {})},
                             "annotations": pod_notes or {}},
                "spec": {**restart, "containers": [{"name": "main", "image": "x"}]}}}}


def test_a_workload_hands_its_label_on_to_its_pods():
    team = {"bimetal.dev/queue-name": "team"}
    size = "bimetal.dev/pod-group-size"

    def template(kind, name):
        meta = server.get(kind, name)["spec"]["template"]["metadata"]
        return meta.get("labels", {}), meta.get("annotations", {})

    for kind in ("Job", "Deployment", "StatefulSet"):
        name = f"by-label-{kind.lower()}"
        accepted(workload(kind, name, team), "--as", "alice")
        labels, notes = template(kind, name)
        assert labels["bimetal.dev/queue-name"] == "team" and labels["app"] == name, labels
        assert size not in notes, notes
        plain = f"plain-{kind.lower()}"
        accepted(workload(kind, plain), "--as", "alice")
        assert "bimetal.dev/queue-name" not in template(kind, plain)[0]
    own = workload("Job", "own", team, {"bimetal.dev/queue-name": "mine"}, completions=4,
                   parallelism=4)
    accepted(own, "--as", "alice")
    labels, notes = template("Job", "own")
    assert labels["bimetal.dev/queue-name"] == "mine" and notes[size] == "4", (labels, notes)
    for name, given, want in (
            ("waves", dict(completions=8, parallelism=4), None),
            ("work-queue", dict(parallelism=4), None),
            ("said", dict(completions=8, parallelism=4, notes={size: "4"}), "4"),
            ("not-a-gang", dict(completions=4, parallelism=4, notes={size: "1"}), "1"),
            ("template", dict(completions=4, parallelism=4, pod_notes={size: "2"}), "2"),
            ("part", dict(completions=4, parallelism=4,
                          pod_labels={"bimetal.dev/pod-group": "all"}), None)):
        accepted(workload("Job", name, team, **given), "--as", "alice")
        assert template("Job", name)[1].get(size) == want, (name, template("Job", name))
    late = server.get("deployment", "plain-deployment")
    late["metadata"]["labels"] = team
    accepted(yaml.safe_dump(late), "--as", "alice", verb="replace")
    assert template("Deployment", "plain-deployment")[0]["bimetal.dev/queue-name"] == "team"
    server.kubectl("delete", "jobs,deployments,statefulsets", "--all", "--as", "alice")


def test_the_operator_lets_a_pod_go_by_one_patch():
    terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a"]}]},
             {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n9"]}]}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    accepted(queued("goes", affinity={"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}),
             "--as", "alice")
    before = server.get("pod", "goes")
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    # As operator/pods/queue_gate.cc writes it.
    patch = {"metadata": {"uid": before["metadata"]["uid"],
                          "resourceVersion": before["metadata"]["resourceVersion"],
                          "annotations": {"bimetal.dev/admitted-to": "team",
                                          "bimetal.dev/node": "n1", "bimetal.dev/waiting": None}},
             "spec": {"schedulingGates": None, "affinity": {"nodeAffinity": {required: {
                 "nodeSelectorTerms": [
                     {**terms[0], "matchFields": [name]},
                     {"matchFields": terms[1]["matchFields"] + [name]}]}}}}}
    send = lambda p: server.kubectl("patch", "pod", "goes", "--type=merge", "-p", yaml.safe_dump(p),
                                    "--as", OPERATOR, check=False)
    stale = copy.deepcopy(patch)
    stale["metadata"]["resourceVersion"] = "1"
    done = send(stale)
    assert done.returncode != 0 and "Conflict" in done.stderr or "modified" in done.stderr, done
    other = copy.deepcopy(patch)
    other["metadata"]["uid"] = "another"
    assert send(other).returncode != 0
    assert gates("goes") == ["bimetal.dev/queue"]
    done = send(patch)
    assert done.returncode == 0, done.stderr
    after = server.get("pod", "goes")
    assert "schedulingGates" not in after["spec"], after["spec"]
    assert after["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"][1][
        "matchFields"][1] == name
    remove_pods("goes")


def test_rights_are_least():
    def can(user, *what):
        return server.kubectl("auth", "can-i", *what, "--as", user, check=False).stdout.strip()

    for what in (("get", "pods"), ("create", "pods"), ("patch", "nodes"), ("get", "secrets"),
                 ("list", "gpunodes"), ("patch", "gpunodes", "--subresource=status"),
                 ("get", "leases", "-n", NAMESPACE), ("create", "tokenreviews")):
        assert can(AGENT, *what) == "no", f"the agent can {what}"
    for what in (("list", "secrets", "-n", NAMESPACE), ("get", "secrets/other", "-n", NAMESPACE),
                 ("get", "secrets/bimetal-agent-ca"), ("create", "secrets"),
                 ("create", "clusterroles"), ("patch", "gpujobs"),
                 ("update", "pods"), ("create", "pods", "--subresource=exec"), ("delete", "nodes"),
                 ("patch", "nodes", "--subresource=status"), ("escalate", "clusterroles"),
                 ("impersonate", "users"), ("delete", "leases", "-n", NAMESPACE)):
        assert can(OPERATOR, *what) == "no", f"the operator can {what}"
    for what in (("create", "pods"), ("patch", "pods"), ("patch", "nodes"),
                 ("create", "pods", "--subresource=eviction"),
                 ("patch", "gpujobs", "--subresource=status"), ("delete", "gpujobs"),  # limits.ttlAfterFinished
                 ("get", "secrets/bimetal-agent-ca", "-n", NAMESPACE),
                 ("patch", "leases/bimetal-operator", "-n", NAMESPACE)):
        assert can(OPERATOR, *what) == "yes", f"the operator cannot {what}"


def newer_chart(folder):
    """A copy of the chart, one version on, whose GPUJob has one field more in spec and in status."""
    chart = pathlib.Path(folder) / "bimetal"
    shutil.copytree(CHART, chart)
    about = chart / "Chart.yaml"
    about.write_text(about.read_text().replace("version: 0.1.0", "version: 0.2.0", 1))
    file = chart / "files" / "crds" / "bimetal.dev_gpujobs.yaml"
    crd = yaml.safe_load(file.read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        schema[part]["properties"]["added"] = {"type": "string", "maxLength": 10}
    file.write_text(yaml.safe_dump(crd))
    return chart


def test_an_upgrade_brings_new_fields_and_loses_no_job():
    with tempfile.TemporaryDirectory() as folder:
        chart = newer_chart(folder)
        for name in ("one", "two", "three"):
            accepted(job(name))
        uids = {j["metadata"]["name"]: j["metadata"]["uid"] for j in server.get("gpujobs")["items"]}
        new = copy.deepcopy(job("new"))
        new["spec"]["added"] = "x"
        refused(new, 'unknown field "spec.added"')
        server.helm("upgrade", "bimetal", chart, *INSTALL)
        eventually(lambda: accepted(new))
        server.kubectl("patch", "gpujob", "new", "--subresource=status", "--type=merge", "-p",
                       '{"status": {"added": "y"}}')
        got = server.get("gpujob", "new")
        assert got["spec"]["added"] == "x" and got["status"]["added"] == "y"
        server.helm("rollback", "bimetal", "1", "-n", NAMESPACE)
        server.helm("upgrade", "bimetal", chart, *INSTALL)
        eventually(lambda: server.kubectl("patch", "gpujob", "one", "--subresource=status",
                                          "--type=merge", "-p", '{"status": {"added": "z"}}'))

        def added():
            server.kubectl("patch", "gpujob", "one", "--subresource=status", "--type=merge", "-p",
                           '{"status": {"added": "z"}}')
            assert server.get("gpujob", "one").get("status", {}).get("added") == "z"
        eventually(added)
        now = {j["metadata"]["name"]: j["metadata"]["uid"] for j in server.get("gpujobs")["items"]}
        assert uids.items() <= now.items()


def test_values_of_an_older_chart_are_reused_or_refused_by_name():
    with tempfile.TemporaryDirectory() as folder:
        old = pathlib.Path(folder) / "bimetal"
        shutil.copytree(CHART, old)
        for name in ("values.yaml", "values.schema.json"):
            assert "uninstall" in (old / name).read_text()
        values = yaml.safe_load((old / "values.yaml").read_text())
        del values["uninstall"]
        (old / "values.yaml").write_text(yaml.safe_dump(values))
        (old / "values.schema.json").unlink()
        (old / "templates" / "uninstall.yaml").unlink()
        server.helm("upgrade", "bimetal", old, "-n", NAMESPACE, "--reset-values")
        done = server.helm("upgrade", "bimetal", CHART, "-n", NAMESPACE, "--reuse-values",
                           check=False)
        assert done.returncode == 0 or "'uninstall'" in done.stderr, done.stderr
        server.helm("upgrade", "bimetal", CHART, *INSTALL, "--reset-then-reuse-values")


def of_the_api_server(o):
    """Whether it is an Event of the API server's own about the address of one of our Services.

    Its repair of Services follows Services and their IPAddresses by two watches. Where the address
    of a Service made just now comes by the second a moment later, it tells that the address "is not
    allocated; repairing" (pkg/registry/core/service/ipallocator/controller/repairip.go). Nobody
    made that with our rights, and the server deletes it by itself after an hour.
    """
    reporter = o.get("reportingComponent") or o.get("reportingController")
    about = o.get("involvedObject") or o.get("regarding") or {}
    return (o["kind"] == "Event" and reporter == "ipallocator-repair-controller"
            and o.get("reason") == "ClusterIPNotAllocated" and about.get("kind") == "Service")


def test_uninstall_leaves_nothing_but_the_kinds_and_their_objects():
    kinds = server.kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split()
    server.helm("uninstall", "bimetal", "-n", NAMESPACE)
    left = []
    for kind in kinds:
        for o in server.get(kind, "-A")["items"]:
            labels = o["metadata"].get("labels", {})
            if labels.get("app.kubernetes.io/instance") == "bimetal" or o["metadata"][
                    "name"].startswith("bimetal-"):
                left.append(o)
    left = [o for o in left if not of_the_api_server(o)]
    assert {o["kind"] for o in left} == {"CustomResourceDefinition"}, [
        o for o in left if o["kind"] != "CustomResourceDefinition"]
    assert len(server.get("gpujobs")["items"]) == 4
    # And the next release takes over what was left.
    server.helm("install", "bimetal", CHART, *INSTALL)
    server.helm("uninstall", "bimetal", "-n", NAMESPACE)


if __name__ == "__main__":
    try:
        with api_server() as server:
            sys.exit(run_all(globals()))
    except Skip as reason:
        print(f"ok api server # SKIP {reason}")
