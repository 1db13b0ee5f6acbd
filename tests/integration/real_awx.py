# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real AWX 24.6.1 from its source: PostgreSQL, Redis, API, dispatcher and callback receiver, before the mesh of mesh.py.

AWX_SOURCE is a checkout of ansible/awx at the tag 24.6.1, DJANGO_ANSIBLE_BASE_SOURCE one of ansible/django-ansible-base at 2024.7.1;
without it, pip gets that from GitHub. Debian: postgresql redis-server libldap2-dev libsasl2-dev libxmlsec1-dev and a C compiler.
Packages and a migrated database are kept in the cache; each start has a copy of the database. All of it listens on loopback only.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.venvs import locked, pip_environment
from integration.mesh import NODES
from integration.playbooks import PATIENCE
from lab.builds import cache
from lab.handle import eventually
from lab.ports import Ports

SOURCE = os.environ.get("AWX_SOURCE", "")
RELEASE = "24.6.1"
BASE = os.environ.get("DJANGO_ANSIBLE_BASE_SOURCE", "git+https://github.com/ansible/django-ansible-base@2024.7.1")
MARKER = ".complete"
CONTROL = "awx-1"
PASSWORD = "secret-password"
# AWX's own image. Its playbooks do not run under newer lines of ansible-core.
OWN_IMAGE = "the.machine/awx-ee"
# What neither API nor dispatcher needs, and what PACKAGES has.
LEFT_OUT = ("cython", "lxml", "maturin", "pip", "setuptools", "setuptools-rust", "uwsgi", "uwsgitop", "wheel", "xmlsec")
PACKAGES = (
    ("setuptools==69.0.2", "wheel", "setuptools-scm==8.0.4", "packaging", "typing-extensions", "pbr==6.0.0"),
    ("--no-build-isolation", "--no-deps", "-r", "requirements.txt"),
    # xmlsec and lxml have to be built with one libxml2: their wheels are.
    (
        *("--no-deps", "--only-binary", ":all:", "xmlsec==1.3.16", "lxml==6.0.0"),
        *("ansible-runner==2.4.3", "python3-saml==1.16.0", "certifi"),
    ),
    ("--no-build-isolation", "--no-deps", BASE),
)
SETUP = (
    ("migrate", "--noinput"),
    ("createsuperuser", "--noinput", "--username=admin", "--email=admin@example.com"),
    ("create_preload_data",),
    ("register_default_execution_environments",),
    ("provision_instance", f"--hostname={CONTROL}", "--node_type=control"),
    *(("provision_instance", f"--hostname={node}", "--node_type=execution") for node in NODES),
    ("register_queue", "--queuename=controlplane", f"--hostnames={CONTROL}"),
    ("register_queue", "--queuename=default", f"--hostnames={','.join(NODES)}"),
)
METRICS = ("callback_receiver", "dispatcher", "websockets")
ENDED = ("successful", "failed", "error", "canceled")
Object = dict[str, Any]


def prepare() -> Path:
    """The folder with AWX, its packages and its database, made first where the cache does not hold it."""
    source = Path(SOURCE, "awx")
    assert source.is_dir(), f"AWX_SOURCE={SOURCE} is no checkout of ansible/awx"
    digest = hashlib.sha256(f"{sys.version}{PACKAGES}{SETUP}".encode())
    for path in sorted(source.rglob("*.py")):
        digest.update(path.read_bytes())
    home = cache() / "awx" / digest.hexdigest()[:12]
    with locked(home):
        if not (home / MARKER).exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            install(home)
            migrate(home)
            (home / MARKER).touch()
    return home


def install(home: Path) -> None:
    """Copy the source and install its packages."""
    # Without what makes it a checkout of a developer.
    released = shutil.ignore_patterns("devonly.py", "__pycache__")
    shutil.copytree(Path(SOURCE, "awx"), home / "source" / "awx", ignore=released)
    shutil.copy(Path(SOURCE, "manage.py"), home / "source")
    (home / "source" / "VERSION").write_text(RELEASE, encoding="ascii")
    receptor = home / "source" / "awx" / "main" / "tasks" / "receptor.py"
    fixed, own = "'/etc/receptor/receptor.conf'", "__import__('os').environ['KUBEWIN_RECEPTOR']"
    text = receptor.read_text(encoding="utf-8")
    assert fixed in text, f"AWX_SOURCE={SOURCE} is no {RELEASE}"
    receptor.write_text(text.replace(fixed, own), encoding="utf-8")
    lines = Path(SOURCE, "requirements", "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if re.match(r"[\w.-]+(\[.*\])?==", line)]
    kept = [line for line in pins if re.split(r"[\[=]", line)[0] not in LEFT_OUT]
    (home / "requirements.txt").write_text("\n".join(kept), encoding="utf-8")
    environment = {**pip_environment(), "SETUPTOOLS_SCM_PRETEND_VERSION": "2024.7.1"}
    commands = [[sys.executable, "-m", "venv", str(home / "venv")]]
    commands += [[str(home / "venv" / "bin" / "pip"), "install", "--no-input", *words] for words in PACKAGES]
    for command in commands:
        run(command, home, environment)


def migrate(home: Path) -> None:
    """Make the database, with an administrator and the nodes of the mesh."""
    setup = Awx(home, home / "setup")
    try:
        setup.start_database()
        for words in SETUP:
            run(setup.manage(*words), home, setup.environment)
    finally:
        setup.stop()
    (home / "setup" / "database").rename(home / "database")


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command of the installation to its end."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-4000:]}"


def find_program(name: str) -> str:
    """A program of PostgreSQL. Debian has them in no folder of PATH."""
    return str(max(Path("/usr/lib/postgresql").glob("*/bin")) / name)


class Awx:
    """One AWX in a folder of its own."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home, self.folder = home, folder
        self._ports = Ports()
        self._stopping: list[tuple[subprocess.Popen[bytes], signal.Signals]] = []
        for name in ("projects", "output", "jobs"):
            (folder / name).mkdir(parents=True)
        (folder / "settings.py").write_text(self._settings(), encoding="utf-8")

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"http://127.0.0.1:{self._ports.take('api')}"

    @property
    def environment(self) -> dict[str, str]:
        """What AWX's own processes run under."""
        return {
            "PATH": f"{self.home / 'venv' / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(self.home / "source"),
            "DJANGO_SETTINGS_MODULE": "awx.settings.production",
            "DJANGO_SUPERUSER_PASSWORD": PASSWORD,
            "AWX_SETTINGS_FILE": str(self.folder / "settings.py"),
            "AWX_LOGGING_MODE": "stdout",
            "KUBEWIN_RECEPTOR": str(self.folder / "mesh" / f"{CONTROL}.yml"),
        }

    def _settings(self) -> str:
        redis = f"unix://{self.folder / 'redis.sock'}"
        database = {"HOST": "127.0.0.1", "PORT": self._ports.take("database"), "USER": "awx", "NAME": "postgres"}
        values = {
            "DATABASES": {
                "default": {"ENGINE": "awx.main.db.profiled_pg", "ATOMIC_REQUESTS": True, **database},
            },
            "BROKER_URL": redis,
            "CACHES": {"default": {"BACKEND": "awx.main.cache.AWXRedisCache", "LOCATION": f"{redis}?db=1"}},
            "CHANNEL_LAYERS": {
                "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [redis]}},
            },
            # The database in the cache is encrypted with it.
            "SECRET_KEY": "of-the-tests",
            "BROADCAST_WEBSOCKET_SECRET": "of-the-tests",
            "ALLOWED_HOSTS": ["127.0.0.1"],
            "CLUSTER_HOST_ID": CONTROL,
            "CONTROL_PLANE_EXECUTION_ENVIRONMENT": OWN_IMAGE,
            "GLOBAL_JOB_EXECUTION_ENVIRONMENTS": [{"name": "AWX EE (latest)", "image": OWN_IMAGE}],
            "PROJECTS_ROOT": str(self.folder / "projects"),
            "JOBOUTPUT_ROOT": str(self.folder / "output"),
            "AWX_ISOLATION_BASE_PATH": str(self.folder / "jobs"),
            "METRICS_SUBSYSTEM_CONFIG": {"server": {name: {"port": self._ports.take(name)} for name in METRICS}},
            "STATIC_ROOT": str(self.folder / "static"),
            "STATICFILES_DIRS": [],
        }
        lines = [f"{name} = {value!r}" for name, value in values.items()]
        # It needs the socket of an rsyslog.
        return "\n".join([*lines, "LOGGING['handlers']['external_logger'] = {'class': 'logging.NullHandler'}", ""])

    def manage(self, *words: str) -> list[str]:
        """A command of AWX."""
        return [str(self.home / "venv" / "bin" / "python"), str(self.home / "source" / "manage.py"), *words]

    def start(
        self,
        name: str,
        *command: str,
        environment: Mapping[str, str] | None = None,
        end: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start a process. The signal `end` ends it, at the latest when this process ends."""
        dying = ["setpriv", "--pdeathsig", end.name.removeprefix("SIG")]
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                # PostgreSQL refuses to run as root. It owns its files all the same.
                ["unshare", "--user", "--map-user=1000", *dying, *command]
                if name == "database"
                else [*dying, *command],
                cwd=self.folder,
                env=environment or self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._stopping.append((process, end))

    def start_database(self) -> None:
        """Start Redis, and PostgreSQL on a copy of the database in the cache, or on a new one."""
        self.start(
            "redis", "redis-server", "--port", "0", "--save", "", "--unixsocket", str(self.folder / "redis.sock")
        )
        data, port = self.folder / "database", str(self._ports.take("database"))
        if (self.home / "database").exists():
            shutil.copytree(self.home / "database", data)
        else:
            made = [find_program("initdb"), "-A", "trust", "-U", "awx", "-E", "UTF8", "--no-sync", str(data)]
            run(["unshare", "--user", "--map-user=1000", *made], self.folder, self.environment)
        options = ["-h", "127.0.0.1", "-p", port, "-k", "", "-c", "fsync=off", "-c", "max_connections=200"]
        self.start("database", find_program("postgres"), "-D", str(data), *options, end=signal.SIGINT)
        ready = [find_program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", port]
        eventually(lambda: subprocess.run(ready, check=False).returncode == 0, "PostgreSQL answers")

    def dump_database(self) -> None:
        """Write what the database holds into a file of the folder."""
        port = str(self._ports.take("database"))
        words = ["-h", "127.0.0.1", "-p", port, "-U", "awx", "-f", str(self.folder / "database.sql"), "postgres"]
        run([find_program("pg_dump"), *words], self.folder, self.environment)

    def start_services(self) -> None:
        """Start the dispatcher, the callback receiver and the API; the database and the mesh run."""
        for name in ("run_dispatcher", "run_callback_receiver"):
            self.start(name, *self.manage(name))
        self.start("runserver", *self.manage("runserver", "--noreload", self.url.removeprefix("http://")))
        eventually(self._answers, f"AWX answers at {self.url}")
        eventually(self._capacity, f"AWX has found {', '.join(NODES)}")

    def start_git(self, folder: Path) -> str:
        """Serve the git repositories of a folder; its address."""
        port = self._ports.take("git")
        served = ["--export-all", f"--base-path={folder}", "--listen=127.0.0.1", f"--port={port}", "--reuseaddr"]
        self.start("git", "git", "daemon", *served)
        return f"git://127.0.0.1:{port}"

    def _answers(self) -> bool:
        try:
            return str(self.request("GET", "ping/")["version"]) == RELEASE
        except OSError:
            return False

    def _capacity(self) -> bool:
        found = self.request("GET", "instances/")["results"]
        return all(item["capacity"] for item in found)

    def stop(self) -> None:
        """End every process, the last one first."""
        for process, end in reversed(self._stopping):
            process.send_signal(end)
            # The dispatcher waits for its jobs.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._ports.close()

    def request(self, method: str, path: str, content: Object | None = None) -> Object:
        """The answer to a request. path: below /api/v2/, or whole. Raises urllib.error.HTTPError."""
        body = self._read(method, path, content)
        found: Object = json.loads(body) if body else {}
        return found

    def _read(self, method: str, path: str, content: Object | None = None) -> bytes:
        access = base64.b64encode(f"admin:{PASSWORD}".encode()).decode()
        asked = urllib.request.Request(
            f"{self.url}{path if path.startswith('/') else f'/api/v2/{path}'}",
            None if content is None else json.dumps(content).encode(),
            {"Authorization": f"Basic {access}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
            found: bytes = answer.read()
        return found

    def list(self, path: str, **filters: str | int) -> list[Object]:
        """Objects of an endpoint, at most 200."""
        query = urllib.parse.urlencode({**filters, "page_size": 200})
        found: list[Object] = self.request("GET", f"{path}?{query}")["results"]
        return found

    def find(self, path: str, name: str) -> Object:
        """The object of an endpoint with a name."""
        (found,) = self.list(path, name=name)
        return found

    def launch(self, path: str, name: str, answers: Mapping[str, Any], **prompts: Any) -> str:
        """Launch a template; the address of its job."""
        number = self.find(path, name)["id"]
        job = self.request("POST", f"{path}{number}/launch/", {"extra_vars": dict(answers), **prompts})
        return str(job["url"])

    def wait(self, url: str, until: Callable[[Object], bool] = lambda job: job["status"] in ENDED) -> Object:
        """A job when it has ended, or when something else is true of it."""
        deadline = time.monotonic() + PATIENCE
        while not until(job := self.request("GET", url)):
            assert time.monotonic() < deadline, f"{url} is {job['status']} after {PATIENCE:.0f} s"
            # A request costs AWX a tenth of a second of CPU.
            time.sleep(1)
        return job

    def read_output(self, url: str) -> str:
        """The output of a job."""
        return self._read("GET", f"{url}stdout/?format=txt").decode()
