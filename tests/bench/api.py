"""The API server as the live benches see it: many connections that create, and watches that note when they heard of what."""

import base64
import http.client
import json
import os
import queue
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

CONNECTIONS = 32  # that create at once
METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


class Api:
    """Speaks HTTP/1.1 with the administrator's certificate, one connection a thread."""

    def __init__(self, kubeconfig):
        text = subprocess.run(["kubectl", "--kubeconfig", kubeconfig, "config", "view", "--raw", "--flatten", "-o", "json"],
                              capture_output=True, text=True, check=True).stdout
        config = json.loads(text)
        server = urllib.parse.urlsplit(config["clusters"][0]["cluster"]["server"])
        self.host, self.port = server.hostname, server.port
        user = config["users"][0]["user"]
        self.context = ssl.create_default_context(
            cadata=base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as pem:  # mode 0600
            for key in ("client-certificate-data", "client-key-data"):
                pem.write(base64.b64decode(user[key]).decode() + "\n")
        try:
            self.context.load_cert_chain(pem.name)
        finally:
            os.unlink(pem.name)
        self.local = threading.local()

    def connect(self, timeout=60):
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=self.context)

    def call(self, method, path, body=None, content="application/json", accept="application/json", allow=()):
        """The answer's body as bytes. Tries again where the server is busy or the connection broke."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        for attempt in range(8):
            connection = getattr(self.local, "connection", None)
            if connection is None:
                connection = self.local.connection = self.connect()
            try:
                connection.request(method, path, body, {"Content-Type": content, "Accept": accept})
                answer = connection.getresponse()
                data = answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                self.local.connection = None
                time.sleep(0.05)
                continue
            if answer.status < 300 or answer.status in allow or (answer.status == 409 and attempt > 0):
                return data
            if answer.status != 429 and answer.status < 500:
                sys.exit(f"{method} {path}: {answer.status} {data[:500].decode(errors='replace')}")
            time.sleep(0.1)
        sys.exit(f"{method} {path}: no answer after 8 tries")

    def get(self, path, allow=()):
        return json.loads(self.call("GET", path, allow=allow))

    def create_all(self, requests, connections=CONNECTIONS):
        """POSTs every (path, object), over many connections at once; returns the time of the first send."""
        calls = [("POST", path, json.dumps(body).encode(), "application/json") for path, body in requests]
        return self.each(calls, connections)

    def each(self, calls, connections=CONNECTIONS):
        """Sends every (method, path, body, content type) and waits for them all; returns the time of the first send."""
        work = queue.SimpleQueue()
        for call in calls:
            work.put(call)
        failed = []

        def run():
            try:
                while True:
                    self.call(*work.get_nowait())
            except queue.Empty:
                pass
            except SystemExit as error:
                failed.append(error)

        threads = [threading.Thread(target=run, daemon=True) for _ in range(min(connections, len(calls)))]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise failed[0]
        return began


class Watch(threading.Thread):
    """Tells `on_event(kind, object, when)` of every change since its start, in the order of resource versions.

    It goes on from the last version where the server ends it (an API server under load drops watchers that fall
    behind); nothing is polled. With fields="spec.nodeName!=" an object is ADDED when it gets its node, so its metadata
    alone is asked for.
    """

    def __init__(self, api, path, on_event, fields="", whole=False):
        super().__init__(daemon=True)
        self.api, self.path, self.on_event, self.whole = api, path, on_event, whole
        self.fields = "&fieldSelector=" + urllib.parse.quote(fields) if fields else ""
        self.accept = "application/json" if whole else METADATA_ONLY
        self.version = self._list()["metadata"]["resourceVersion"]
        self.resumed = self.listed = 0
        self.stopped = False
        self.connection = None
        self.ready = threading.Event()
        self.start()
        self.ready.wait(30)

    def stop(self):
        self.stopped = True

    def _list(self, limit="&limit=1"):
        accept = "application/json" if self.whole else METADATA_LIST
        return json.loads(self.api.call("GET", f"{self.path}?{self.fields}{limit}", accept=accept))

    def run(self):
        while not self.stopped:
            try:
                if self._follow() == 410:
                    self._list_again()
            except (OSError, http.client.HTTPException, ValueError):
                pass  # it ended in the middle of a line: go on from the last whole one
            finally:
                self.connection.close()
            self.resumed += 1

    def _follow(self):
        self.connection = self.api.connect(timeout=600)
        self.connection.request("GET", f"{self.path}?watch=1&allowWatchBookmarks=true&timeoutSeconds=3000{self.fields}"
                                f"&resourceVersion={self.version}", headers={"Accept": self.accept})
        answer = self.connection.getresponse()
        if answer.status != 200:
            answer.read()
            time.sleep(0.1)
            return answer.status
        self.ready.set()
        while not self.stopped:
            line = answer.readline()
            if not line:
                return 0
            when = time.monotonic()
            event = json.loads(line)
            if event["type"] == "ERROR":
                return event["object"].get("code", 0)
            self.version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self.on_event(event["type"], event["object"], when)
        return 0

    def _list_again(self):
        """What happened meanwhile is only known to have happened by now."""
        self.listed += 1
        say(f"a watch of {self.path} lost its place: times from now on may be late")
        found = self._list("")
        self.version = found["metadata"]["resourceVersion"]
        when = time.monotonic()
        for item in found["items"]:
            self.on_event("ADDED", item, when)


class PodTimes:
    """When each pod of a namespace was seen made, bound, running and ended; only what was asked for is watched."""

    def __init__(self, api, namespace, *wanted, whole=False):
        self.made, self.bound, self.running, self.ended = {}, {}, {}, {}
        self.born = {}  # the whole object as it was made, where `whole`
        self.changed = threading.Condition()
        path = f"/api/v1/namespaces/{namespace}/pods"
        self.watches = []
        if "made" in wanted:
            self.watches.append(Watch(api, path, self._made, whole=whole))
        if "bound" in wanted:
            self.watches.append(Watch(api, path, self._bound, "spec.nodeName!="))
        if "running" in wanted:
            self.watches.append(Watch(api, path, self._running, "status.phase=Running"))

    def _made(self, kind, pod, when):
        name = pod["metadata"]["name"]
        if kind == "ADDED" and name not in self.made:
            self.born[name] = pod
            self._note(self.made, name, when)

    def _bound(self, kind, pod, when):
        if kind == "ADDED":
            self._note(self.bound, pod["metadata"]["name"], when)

    def _running(self, kind, pod, when):
        if kind == "ADDED":
            self._note(self.running, pod["metadata"]["name"], when)
        elif kind == "DELETED":
            self._note(self.ended, pod["metadata"]["name"], when)

    def _note(self, times, name, when):
        with self.changed:
            times.setdefault(name, when)
            self.changed.notify_all()

    def wait(self, times, count, seconds, what):
        """Until `count` pods are in `times`; says every five seconds how many are."""
        begin = told = time.monotonic()
        with self.changed:
            while len(times) < count:
                self.changed.wait(1)
                now = time.monotonic()
                if now - begin > seconds:
                    sys.exit(f"{what}: {len(times)} of {count} within {seconds} s")
                if now - told >= 5:
                    told = now
                    say(f"{now - begin:5.0f} s: {len(times)} of {count} {what}")
            return dict(times)

    def stop(self):
        for watch in self.watches:
            watch.stop()
