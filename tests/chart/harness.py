"""What the chart's tests share: where the tools are, TAP lines, Helm and a real API server.

A test is a function whose name begins with test_. run_all() runs those of a module in their order and
prints a TAP line for each and a count; a test that raises anything has failed.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "bimetal"
NAMESPACE = "gpu-system"


class Skip(Exception):
    """Raised where something that a test needs is not installed."""


def _search_path():
    # dev/lib/env.sh knows the folders of the built tools, BIMETAL_TOOLS among them.
    script = f"source {ROOT}/dev/lib/env.sh && printf %s \"$PATH\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else os.environ["PATH"]


_PATH = _search_path()


def tool(name):
    """The path of a program; Skip where it is nowhere."""
    found = shutil.which(name, path=_PATH)
    if not found:
        raise Skip(f"{name} is not built: run dev/setup --tools")
    return found


def run(*args, stdin=None, check=True, env=None):
    """Runs a program and gives its result; an unexpected exit status is an error that shows it."""
    done = subprocess.run([str(a) for a in args], input=stdin, capture_output=True, text=True,
                          check=False, timeout=300, env=env)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, args))} failed:\n{done.stdout}{done.stderr}")
    return done


def run_all(module_globals):
    """Runs the module's tests; the exit status for the process."""
    passed = failed = skipped = 0
    for name, function in list(module_globals.items()):
        if not name.startswith("test_") or not callable(function):
            continue
        title = name[len("test_"):].replace("_", " ")
        try:
            function()
        except Skip as reason:
            skipped += 1
            print(f"ok {title} # SKIP {reason}", flush=True)
        except Exception:  # whatever it was, the next test must run
            failed += 1
            traceback.print_exc()
            print(f"not ok {title}", flush=True)
        else:
            passed += 1
            print(f"ok {title}", flush=True)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""),
          file=sys.stderr)
    return 1 if failed else 0


def helm(*args, check=True, stdin=None, env=None):
    return run(tool("helm"), *args, check=check, stdin=stdin, env=env)


def template(*args, values=None, check=True, chart=CHART):
    """helm template with values as a Python object."""
    extra = [] if values is None else ["-f", "-"]
    stdin = None if values is None else yaml.safe_dump(values)
    return helm("template", "bimetal", chart, "-n", NAMESPACE, *extra, *args, check=check,
                stdin=stdin)


def render(*args, values=None, chart=CHART):
    """The objects that the chart makes of these values."""
    text = template(*args, values=values, chart=chart).stdout
    return [o for o in yaml.safe_load_all(text) if o is not None]


def pick(objects, kind, name):
    found = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    assert len(found) == 1, f"{len(found)} objects {kind}/{name}"
    return found[0]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def eventually(function, seconds=60):
    """Calls until it does not raise AssertionError; the last error where it never does."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return function()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


class ApiServer:
    """A kube-apiserver and its etcd on free ports of the loopback, without controllers or nodes."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.processes = []
        self.kubeconfig = self.folder / "kubeconfig"

    def _spawn(self, *args):
        log = open(self.folder / (pathlib.Path(args[0]).name + ".log"), "wb")
        self.processes.append(subprocess.Popen([str(a) for a in args], stdout=log, stderr=log,
                                               cwd=self.folder, start_new_session=True))

    def start(self):
        etcd, api = tool("etcd"), tool("kube-apiserver")
        tool("kubectl")
        client, peer, port = free_port(), free_port(), free_port()
        self._spawn(etcd, "--data-dir", "etcd", "--unsafe-no-fsync", "--log-level", "warn",
                    "--listen-client-urls", f"http://127.0.0.1:{client}",
                    "--advertise-client-urls", f"http://127.0.0.1:{client}",
                    "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                    "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                    "--initial-cluster", f"default=http://127.0.0.1:{peer}")
        run("openssl", "genrsa", "-out", self.folder / "sa.key", "2048")
        run("openssl", "rsa", "-in", self.folder / "sa.key", "-pubout", "-out",
            self.folder / "sa.pub")
        (self.folder / "tokens.csv").write_text('test,admin,1,"system:masters"\n')
        self._spawn(api, "--etcd-servers", f"http://127.0.0.1:{client}", "--bind-address",
                    "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", port,
                    "--cert-dir", "certs", "--service-account-issuer",
                    "https://kubernetes.default.svc", "--service-account-key-file", "sa.pub",
                    "--service-account-signing-key-file", "sa.key", "--token-auth-file",
                    "tokens.csv", "--authorization-mode", "RBAC", "--service-cluster-ip-range",
                    "10.96.0.0/16", "--endpoint-reconciler-type", "none",
                    # There is no controller that would make the accounts of new namespaces.
                    "--disable-admission-plugins", "ServiceAccount")
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {
                "server": f"https://127.0.0.1:{port}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "test", "user": {"token": "test"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}))

        def answers():
            for process in self.processes:
                if process.poll() is not None:
                    name = pathlib.Path(process.args[0]).name
                    raise RuntimeError((self.folder / f"{name}.log").read_text()[-2000:])
            assert self.kubectl("get", "--raw", "/readyz", check=False).returncode == 0
        eventually(answers, 120)
        # Made by a controller elsewhere.
        eventually(lambda: self.kubectl("get", "namespace", "default"))

    def kubectl(self, *args, stdin=None, check=True):
        return run(tool("kubectl"), "--kubeconfig", self.kubeconfig, *args, stdin=stdin,
                   check=check)

    def helm(self, *args, check=True):
        return helm("--kubeconfig", self.kubeconfig, *args, check=check)

    def apply(self, document, *args, check=True, verb="apply"):
        text = document if isinstance(document, str) else yaml.safe_dump(document)
        return self.kubectl(verb, "-f", "-", *args, stdin=text, check=check)

    def get(self, *args):
        return json.loads(self.kubectl("get", *args, "-o", "json").stdout)

    def stop(self):
        # The API server first: without etcd it would take a minute to end.
        for process in reversed(self.processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def api_server():
    """A running ApiServer, gone with everything it wrote at the end."""
    with tempfile.TemporaryDirectory(prefix="bimetal-chart-") as folder:
        server = ApiServer(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
