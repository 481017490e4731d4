#!/usr/bin/env python3
"""What the chart renders for many values. Needs Helm and nothing else."""

import copy
import os
import pathlib
import sys
import tempfile

import yaml

from harness import CHART, NAMESPACE, ROOT, Skip, helm, pick, render, run, run_all, template

CLUSTER_SCOPED = {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass",
                  "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
                  "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
# Every optional part by itself: its name and the values that switch it on (or off).
OPTIONS = {
    "two replicas": {"operator": {"replicas": 2}},
    "disruption budget": {"operator": {"podDisruptionBudget": {"enabled": True}}},
    "no leader election": {"operator": {"leaderElection": {"enabled": False}}},
    "nvidia runtime class": {"agent": {"nvidia": {"runtimeClassName": "nvidia"}}},
    "rocm of the host": {"agent": {"amd": {"rocmPath": "/opt/rocm"}}},
    "no host paths": {"agent": {"hostPaths": {"enabled": False}}},
    "simulation": {"simulation": {"enabled": True}},
    "pull secrets": {"image": {"pullSecrets": [{"name": "registry"}]}},
    "no policies": {"admissionPolicies": {"enabled": False}},
    "policies that warn": {"admissionPolicies": {"validationActions": ["Warn", "Audit"]}},
    "no queue label": {"queueLabel": {"enabled": False}},
    "no crds": {"crds": {"install": False}},
    "no defaults": {"defaults": {"queue": False, "pools": False}},
    "no cleanup": {"uninstall": {"cleanup": False}},
    "no scrape annotations": {"metrics": {"scrapeAnnotations": False}},
    "no nvidia validation": {"image": {"validationNvidia": {"repository": ""}}},
    "no amd validation": {"image": {"validationAmd": {"repository": ""}}},
    "labels and annotations": {
        "operator": {"podLabels": {"a": "b"}, "podAnnotations": {"c": "d"},
                     "nodeSelector": {"e": "f"}, "affinity": {"nodeAffinity": {}},
                     "tolerations": [{"operator": "Exists"}]},
        "agent": {"podLabels": {"a": "b"}, "podAnnotations": {"c": "d"},
                  "nodeSelector": {"e": "f"}}},
}


def default_values():
    return yaml.safe_load((CHART / "values.yaml").read_text())


def merged(base, over):
    out = copy.deepcopy(base)
    for key, value in over.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(
            out.get(key), dict) else value
    return out


def blocks(values, path=()):
    """The paths of all maps that have keys of their own."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield path + (key,)
            yield from blocks(value, path + (key,))


def leaves(values, path=()):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, path + (key,))
        else:
            yield path + (key,)


def nested(path, value):
    for key in reversed(path):
        value = {key: value}
    return value


# Maps whose keys are the user's own: any may be there or not.
FREE_MAPS = {("operator", "resources"), ("agent", "resources"), ("agent", "nvidia", "nodeSelector")}


def is_ours(path):
    return not any(path[:len(free)] == free for free in FREE_MAPS)


def check_objects(objects, what):
    seen = set()
    for o in objects:
        identity = (o["kind"], o["metadata"]["name"])
        assert identity not in seen, f"{what}: {identity} twice"
        seen.add(identity)
        if o["kind"] in CLUSTER_SCOPED:
            assert "namespace" not in o["metadata"], f"{what}: {identity} has a namespace"
        else:
            assert o["metadata"].get("namespace") == NAMESPACE, f"{what}: {identity}"
        assert o["metadata"]["labels"]["app.kubernetes.io/instance"] == "bimetal", identity
    return seen


def pod_specs(objects):
    for o in objects:
        template_spec = o.get("spec", {}).get("template", {}).get("spec")
        if template_spec:
            yield o["metadata"]["name"], template_spec


def config_of(objects, name, key):
    return yaml.safe_load(pick(objects, "ConfigMap", name)["data"][key])


def test_lint_passes():
    for values in ({}, *OPTIONS.values()):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(values, file)
            file.flush()
            helm("lint", "--strict", CHART, "-f", file.name)


def test_default_values_render_the_same_as_an_empty_file():
    assert template().stdout == template(values={}).stdout
    kinds = check_objects(render(), "defaults")
    for identity in [("Deployment", "bimetal-operator"), ("DaemonSet", "bimetal-agent"),
                     ("Service", "bimetal-operator"), ("Service", "bimetal-operator-metrics"),
                     ("PriorityClass", "bimetal-job"), ("PriorityClass", "bimetal-system"),
                     ("ServiceAccount", "bimetal-validation")]:
        assert identity in kinds, identity


def test_each_optional_part_renders_by_itself():
    for what, values in OPTIONS.items():
        check_objects(render(values=values), what)


def test_all_optional_parts_render_together():
    values = {}
    for what, option in OPTIONS.items():
        if what not in ("no leader election", "no policies", "no queue label"):
            values = merged(values, option)
    check_objects(render(values=values), "all")


def test_a_block_that_is_null_is_refused_by_name():
    for path in blocks(default_values()):
        if not is_ours(path):
            continue
        done = template(values=nested(path, None), check=False)
        assert done.returncode != 0, f"{path} null was accepted"
        assert f"missing property '{path[-1]}'" in done.stderr, f"{path}: {done.stderr}"


def test_a_value_that_is_null_is_refused_by_name():
    values = {}
    paths = [p for p in leaves(default_values()) if is_ours(p)]
    for path in paths:
        values = merged(values, nested(path, None))
    done = template(values=values, check=False)
    assert done.returncode != 0
    for path in paths:
        assert f"'{path[-1]}'" in done.stderr, f"{path} is not named: {done.stderr}"


def test_an_unknown_key_is_refused_by_name():
    values = {"surprise0": 1}
    for i, path in enumerate(filter(is_ours, blocks(default_values())), 1):
        values = merged(values, nested(path + (f"surprise{i}",), 1))
    done = template(values=values, check=False)
    assert done.returncode != 0
    for i in range(values_count := len(list(filter(is_ours, blocks(default_values())))) + 1):
        assert f"'surprise{i}'" in done.stderr, f"surprise{i} of {values_count}: {done.stderr}"


def test_wrong_values_are_refused_with_their_path():
    for path, value in {
            "operator.replicas": "two", "operator.leaderElection.leaseDuration": "1.5s",
            "agent.staleAfter": "30", "image.tag": "a b", "image.operator.digest": "sha256:12",
            "image.operator.repository": "", "defaults.devicePlugin": "Both",
            "log.level": "loud", "agent.maxUnavailable": "0%", "simulation.hostPath": "machine",
            "admissionPolicies.validationActions": [], "validation.tolerations": [{"kye": "a"}],
            "uninstall.timeoutSeconds": 1}.items():
        keys = tuple(path.split("."))
        done = template(values=nested(keys, value), check=False)
        assert done.returncode != 0, f"{path}={value!r} was accepted"
        assert "/" + "/".join(keys) in done.stderr, f"{path}: {done.stderr}"


def test_values_that_do_not_go_together_are_refused_with_a_remedy():
    done = template(values={"operator": {"replicas": 2, "leaderElection": {"enabled": False}}},
                    check=False)
    assert done.returncode != 0 and "operator.leaderElection.enabled" in done.stderr, done.stderr
    done = template(values={"agent": {"nvidia": {"runtimeClassName": "nvidia", "nodeSelector": {
        "nvidia.com/gpu.present": None}}}}, check=False)
    assert done.returncode != 0 and "agent.nvidia.nodeSelector" in done.stderr, done.stderr


def test_the_queue_label_takes_the_api_that_the_server_has_or_says_what_to_do():
    group = "admissionregistration.k8s.io"
    kind = "MutatingAdmissionPolicy"
    def version(*args):
        return pick(render(*args), kind, "bimetal-queued-pods")["apiVersion"]
    assert version() == f"{group}/v1"
    both = ("--api-versions", f"{group}/v1/{kind},{group}/v1beta1/{kind}")
    assert version(*both) == f"{group}/v1"
    assert version("--api-versions", f"{group}/v1beta1/{kind}") == f"{group}/v1beta1"
    old = template("--kube-version", "1.33.0", check=False)
    assert old.returncode != 0 and "set queueLabel.enabled=false" in old.stderr, old.stderr
    off = {"queueLabel": {"enabled": False}}
    assert not [o for o in render("--kube-version", "1.33.0", values=off) if o["kind"] == kind]
    # The lock on the gate goes with the other locks.
    for values, there in (({}, True), (off, False), ({"admissionPolicies": {"enabled": False}}, False)):
        found = [o for o in render(values=values) if o["kind"] == "ValidatingAdmissionPolicy"
                 and o["metadata"]["name"] == "bimetal-queued-pods"]
        assert bool(found) == there, values


def test_image_references_take_registry_tag_and_digest():
    digest = "sha256:" + "a" * 64
    objects = render(values={"image": {
        "registry": "registry.example.com/team/", "tag": "1.2",
        "agent": {"tag": "1.3"}, "operator": {"digest": digest},
        "validationAmd": {"repository": "bimetal-validation-rocm"},
        "validationNvidia": {"repository": ""}}})
    specs = dict(pod_specs(objects))
    image = lambda name: specs[name]["containers"][0]["image"]
    assert image("bimetal-operator") == f"registry.example.com/team/bimetal-operator@{digest}"
    assert image("bimetal-agent") == "registry.example.com/team/bimetal-agent:1.3"
    config = config_of(objects, "bimetal-operator", "config.yaml")
    assert config["validation"]["images"] == {
        "nvidia": "", "amd": "registry.example.com/team/bimetal-validation-rocm:1.2"}
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    assert dict(pod_specs(render()))["bimetal-agent"]["containers"][0]["image"].endswith(
        f":{version}")


def test_configurations_are_read_by_the_programs():
    # Written by tests/chart/check_config.cc around the programs' own parsers.
    program = os.environ.get("BIMETAL_CHECK_CONFIG", "")
    if not program or not pathlib.Path(program).exists():
        raise Skip("the operator's and the agent's configuration are not in this build")
    for what, values in {"defaults": {}, **OPTIONS, "levels": {"log": {"level": "warn"}}}.items():
        objects = render(values=values)
        for kind, name, key in [("operator", "bimetal-operator", "config.yaml"),
                                ("agent", "bimetal-agent", "agent.yaml")]:
            text = pick(objects, "ConfigMap", name)["data"][key]
            done = run(program, kind, stdin=text, check=False)
            assert done.returncode == 0, f"{what}: {kind}: {done.stderr}"


def test_names_of_the_configurations_are_those_of_the_objects():
    objects = render()
    operator = config_of(objects, "bimetal-operator", "config.yaml")
    agent = config_of(objects, "bimetal-agent", "agent.yaml")
    assert operator["namespace"] == NAMESPACE
    host, port = agent["operator"]["address"].split(":")
    assert host == agent["operator"]["tlsServerName"] == operator["grpc"]["serviceName"]
    name, namespace, _ = host.split(".")
    service = pick(objects, "Service", name)
    assert namespace == NAMESPACE and service["spec"]["ports"][0]["port"] == int(port)
    assert operator["agent"]["serviceAccount"] == f"system:serviceaccount:{NAMESPACE}:bimetal-agent"
    pick(objects, "ServiceAccount", operator["validation"]["serviceAccountName"])
    pick(objects, "PriorityClass", operator["jobs"]["priorityClassName"])
    spec = dict(pod_specs(objects))["bimetal-agent"]
    [token] = [v for v in spec["volumes"] if v["name"] == "token"]
    source = token["projected"]["sources"][0]["serviceAccountToken"]
    assert source["audience"] == operator["agent"]["audience"]
    mounts = {m["name"]: m["mountPath"] for m in spec["containers"][0]["volumeMounts"]}
    assert agent["operator"]["tokenFile"] == f"{mounts['token']}/{source['path']}"
    assert agent["operator"]["caFile"] == f"{mounts['ca']}/ca.crt"
    [socket] = [v for v in spec["volumes"] if v["name"] == "socket"]
    assert socket["hostPath"]["path"] == operator["validation"]["socketHostPath"]
    assert agent["socket"].startswith(mounts["socket"] + "/")
    assert agent["stateDir"] == mounts["state"]
    assert agent["kubelet"]["devicePluginDir"] == mounts["device-plugins"]


def test_every_pod_is_locked_down():
    for values in ({}, {"simulation": {"enabled": True}}, {"agent": {"kernelLog": False}},
                   {"agent": {"nvidia": {"runtimeClassName": "nvidia"}}}):
        simulated = values.get("simulation", {}).get("enabled", False)
        reads_log = values.get("agent", {}).get("kernelLog", True) and not simulated
        for name, spec in pod_specs(render(values=values)):
            context = spec["securityContext"]
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
            # Only agents are root: the kubelet's plug-in folder is root's.
            assert name.startswith("bimetal-agent") == (context["runAsUser"] == 0), name
            assert name.startswith("bimetal-agent") or context["runAsNonRoot"] is True, name
            assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), name
            # Only agents may read the kernel's log, where it is wanted and real.
            capabilities = {"drop": ["ALL"]}
            if name.startswith("bimetal-agent") and reads_log:
                capabilities["add"] = ["SYSLOG"]
            for container in spec["containers"]:
                assert container["securityContext"] == {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                    "capabilities": capabilities}, name
                assert "memory" in container["resources"]["limits"], name


def test_the_agent_sees_only_what_it_needs_of_its_node():
    writable = {"/var/lib/kubelet/device-plugins", "/run/bimetal", "/var/lib/bimetal/agent"}
    installed = {"/usr", "/lib/modules"}
    for values, read_only in (
            ({}, installed | {"/sys", "/proc", "/var/lib/kubelet/pod-resources"}),
            ({"agent": {"hostPaths": {"enabled": False}}},
             {"/sys", "/proc", "/var/lib/kubelet/pod-resources"}),
            ({"simulation": {"enabled": True}},
             {"/var/lib/bimetal/machine", "/var/lib/kubelet/pod-resources"}),
            ({"agent": {"amd": {"rocmPath": "/opt/rocm"}}},
             installed | {"/sys", "/proc", "/opt/rocm", "/var/lib/kubelet/pod-resources"})):
        spec = dict(pod_specs(render(values=values)))["bimetal-agent"]
        paths = {v["name"]: v["hostPath"]["path"] for v in spec["volumes"] if "hostPath" in v}
        mounts = spec["containers"][0]["volumeMounts"]
        is_read_only = {m["name"]: m.get("readOnly", False) for m in mounts}
        assert {p for n, p in paths.items() if is_read_only[n]} == read_only
        assert {p for n, p in paths.items() if not is_read_only[n]} == writable
        # Under the agent's root, each where it lies on the node.
        for mount in mounts:
            if mount["mountPath"].startswith("/host/"):
                assert mount["mountPath"] == "/host" + paths[mount["name"]]


def test_nobody_but_the_operator_has_rights():
    objects = render()
    subjects = {(o["kind"], s["name"]) for o in objects
                if o["kind"] in ("RoleBinding", "ClusterRoleBinding") for s in o["subjects"]}
    assert {name for _, name in subjects} == {"bimetal-operator", "bimetal-cleanup"}
    for name in ("bimetal-agent", "bimetal-validation"):
        assert pick(objects, "ServiceAccount", name)["automountServiceAccountToken"] is False
    assert dict(pod_specs(objects))["bimetal-agent"]["automountServiceAccountToken"] is False


def test_the_operators_rights_are_a_closed_list():
    objects = render()
    rights = {}
    for kind in ("ClusterRole", "Role"):
        for rule in pick(objects, kind, "bimetal-operator")["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    key = (kind, f"{group}/{resource}", tuple(rule.get("resourceNames", [])))
                    rights.setdefault(key, set()).update(rule["verbs"])
    read = {"list", "watch"}
    own = ("bimetal-agent-ca",)
    assert rights == {
        ("ClusterRole", "/nodes", ()): read | {"patch"},
        ("ClusterRole", "/pods", ()): read | {"get", "create", "patch", "delete"},
        ("ClusterRole", "/pods/eviction", ()): {"create"},
        ("ClusterRole", "/services", ()): read | {"get", "create", "patch"},
        ("ClusterRole", "/namespaces", ()): read,
        ("ClusterRole", "/events", ()): {"create"},
        ("ClusterRole", "scheduling.k8s.io/priorityclasses", ()): read,
        ("ClusterRole", "authentication.k8s.io/tokenreviews", ()): {"create"},
        ("ClusterRole", "bimetal.dev/gpujobs", ()): read | {"get", "delete"},
        ("ClusterRole", "bimetal.dev/gpupools", ()): read | {"get", "create"},
        ("ClusterRole", "bimetal.dev/gpuqueues", ()): read | {"get", "create"},
        ("ClusterRole", "bimetal.dev/gpuservices", ()): read | {"get"},
        ("ClusterRole", "bimetal.dev/pricebooks", ()): read,
        ("ClusterRole", "bimetal.dev/validationprofiles", ()): read,
        ("ClusterRole", "bimetal.dev/gpunodes", ()): read | {"get", "create"},
        ("ClusterRole", "bimetal.dev/gpujobs/status", ()): {"patch"},
        ("ClusterRole", "bimetal.dev/gpunodes/status", ()): {"patch"},
        ("ClusterRole", "bimetal.dev/gpupools/status", ()): {"patch"},
        ("ClusterRole", "bimetal.dev/gpuqueues/status", ()): {"patch"},
        ("ClusterRole", "bimetal.dev/gpuservices/status", ()): {"patch"},
        ("Role", "coordination.k8s.io/leases", ()): {"create"},
        ("Role", "coordination.k8s.io/leases", ("bimetal-operator",)): {"get", "patch"},
        ("Role", "/secrets", ()): {"create"},
        ("Role", "/configmaps", ()): {"create"},
        ("Role", "/secrets", own): {"get", "update"},
        ("Role", "/configmaps", own): {"get", "update"},
    }, rights
    cluster_role = pick(render(values={"defaults": {"queue": False, "pools": False}}),
                        "ClusterRole", "bimetal-operator")
    assert all("create" not in rule["verbs"] for rule in cluster_role["rules"]
               if {"gpupools", "gpuqueues"} & set(rule["resources"]))


def test_the_nvidia_agents_and_the_others_share_no_node():
    objects = render(values={"agent": {"nvidia": {"runtimeClassName": "nvidia", "nodeSelector": {
        "nvidia.com/gpu.present": None, "gpu": "1", "rack": "2"}}}})
    specs = dict(pod_specs(objects))
    assert specs["bimetal-agent-nvidia"]["runtimeClassName"] == "nvidia"
    assert specs["bimetal-agent-nvidia"]["nodeSelector"] == {"gpu": "1", "rack": "2"}
    assert "runtimeClassName" not in specs["bimetal-agent"]
    required = specs["bimetal-agent"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"]
    assert required["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": key, "operator": "NotIn", "values": [value]}]}
        for key, value in (("gpu", "1"), ("rack", "2"))]
    selectors = [tuple(sorted(pick(objects, "DaemonSet", name)["spec"]["selector"]
                              ["matchLabels"].items())) for name in specs if "agent" in name]
    assert len(set(selectors)) == 2


def test_crds_are_those_of_the_generator_and_are_kept():
    files = sorted((ROOT / "manifests" / "crds").glob("*.yaml"))
    assert len(files) >= 6
    copies = sorted((CHART / "files" / "crds").glob("*.yaml"))
    assert [f.name for f in files] == [f.name for f in copies]
    for file, duplicate in zip(files, copies):
        assert file.read_bytes() == duplicate.read_bytes(), f"{duplicate}: build update-manifests"
    rendered = [o for o in render() if o["kind"] == "CustomResourceDefinition"]
    assert len(rendered) == len(files)
    for file in files:
        crd = yaml.safe_load(file.read_text())
        ours = pick(rendered, "CustomResourceDefinition", crd["metadata"]["name"])
        assert ours["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert ours["spec"] == crd["spec"], file
    assert not [o for o in render(values={"crds": {"install": False}})
                if o["kind"] == "CustomResourceDefinition"]


def test_a_new_configuration_makes_new_pods():
    checksum = lambda objects, kind, name: pick(objects, kind, name)["spec"]["template"][
        "metadata"]["annotations"]["checksum/config"]
    before, after = render(), render(values={"log": {"level": "debug"}})
    for kind, name in (("Deployment", "bimetal-operator"), ("DaemonSet", "bimetal-agent")):
        assert checksum(before, kind, name) != checksum(after, kind, name)


def test_every_value_is_documented():
    page = (ROOT / "docs" / "reference" / "values.md").read_text()
    for path in leaves(default_values()):
        if is_ours(path):
            assert f"`{'.'.join(path)}`" in page, f"{'.'.join(path)} is not in values.md"


def test_empty_values_reach_the_operator_as_empty_text():
    # Empty values must be given to the operator as empty text, never left out or "null".
    objects = render(values={"image": {"validationAmd": {"repository": ""}}})
    config = config_of(objects, "bimetal-operator", "config.yaml")
    assert config["validation"]["images"]["amd"] == ""
    assert config["defaults"]["priceBook"] == ""
    assert set(config) == {"namespace", "leaderElection", "grpc", "http", "agent", "validation",
                           "jobs", "defaults", "log"}


if __name__ == "__main__":
    sys.exit(run_all(globals()))
