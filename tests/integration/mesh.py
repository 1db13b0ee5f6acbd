# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs as AWX runs them: ansible-runner over a Receptor mesh of one control node and two execution nodes.

What is handed over, and how, follows AWX's own code: awx/main/tasks/jobs.py and awx/main/tasks/receptor.py.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import ansible_runner.interface
import yaml
from integration.container import install
from integration.playbooks import PATIENCE, ROOT
from lab import builds
from lab.handle import Lab, eventually
from lab.ports import Ports
from receptorctl.socket_interface import ReceptorControl

PROJECT = ROOT / "extensions" / "awx"
NODES = ("exec1", "exec2")
SUPPORT = "/support"
SSH_PROMPT = r"SSH password:\s*?$"
# The commands of this interpreter's environment.
COMMANDS = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
IMAGE = "the.machine/itself"


@dataclass(frozen=True, slots=True)
class Job:
    """One finished job: what AWX keeps of it."""

    number: int
    status: str
    code: int
    events: tuple[dict[str, Any], ...]
    explanation: str
    artifacts: Path

    @property
    def screen(self) -> str:
        """Its output."""
        return "\n".join(event["stdout"] for event in self.events if event.get("stdout"))

    @property
    def statistics(self) -> dict[str, Any]:
        """What a workflow hands to its next jobs."""
        found = [
            event["event_data"].get("artifact_data") for event in self.events if event["event"] == "playbook_on_stats"
        ]
        return dict(found[-1] or {}) if found else {}

    @property
    def refusals(self) -> str:
        """Why the run failed, as its summary has it."""
        summary = self.statistics.get("kubewin_summary") or {}
        return str(summary.get("failure", ""))


@dataclass(frozen=True, slots=True)
class Credential:
    """The Machine credential and the one called "OpenShift or Kubernetes API Bearer Token"."""

    user: str
    password: str = field(repr=False)
    host: str
    token: str = field(repr=False)
    authority: str

    @classmethod
    def of(cls, lab: Lab) -> Credential:
        """Of the lab's account."""
        config = yaml.safe_load(Path(lab.state.kubeconfigs["kubewin"]).read_text(encoding="utf-8"))
        return cls(
            lab.state.user,
            Path(lab.state.password_file).read_text(encoding="utf-8").strip(),
            lab.state.server,
            config["users"][0]["user"]["token"],
            Path(lab.state.ca).read_text(encoding="utf-8"),
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be read nowhere."""
        return self.password, self.token


def inventory_of(lab: Lab) -> dict[str, Any]:
    """The lab's Windows hosts as AWX hands an inventory to a job: a script's output, without what credentials hold."""
    content = yaml.safe_load(Path(lab.state.inventories["ntlm-https"]).read_text(encoding="utf-8"))["all"]
    windows = content["children"]["windows"]
    hosts = {
        name: {
            key: value
            for key, value in {**content["vars"], **windows["vars"], **variables}.items()
            if key not in ("ansible_user", "ansible_password", "kubewin_kubeconfig")
        }
        for name, variables in windows["hosts"].items()
    }
    return {"windows": {"hosts": list(hosts)}, "_meta": {"hostvars": hosts}}


def sliced(inventory: Mapping[str, Any], number: int, count: int) -> dict[str, Any]:
    """What the job of slice `number` of `count` gets: every count-th host by name, and groups with these hosts alone.

    AWX's get_sliced_hosts and get_script_data (awx/main/models/inventory.py). No variable shows the job that it is a slice.
    """
    hosts = inventory["_meta"]["hostvars"]
    chosen = sorted(hosts)[number - 1 :: count]
    groups = {
        name: {**group, "hosts": [host for host in group["hosts"] if host in chosen]}
        for name, group in inventory.items()
        if name != "_meta"
    }
    return {**groups, "_meta": {"hostvars": {host: hosts[host] for host in chosen}}}


class Running:
    """A job that was submitted."""

    def __init__(self, mesh: Mesh, number: int, folder: Path, unit: str) -> None:
        self.mesh, self.number, self.folder, self.unit = mesh, number, folder, unit
        self.events: list[dict[str, Any]] = []
        self._status, self.explanation = "", ""
        self._thread = threading.Thread(target=self._process, daemon=True)
        self._thread.start()

    def _process(self) -> None:
        connected, results = self.mesh.control.get_work_results(self.unit, return_socket=True, return_sockfile=True)
        try:
            ended = ansible_runner.interface.run(
                streamer="process",
                quiet=True,
                _input=results,
                private_data_dir=str(self.folder),
                ident=str(self.number),
                event_handler=self._event,
                status_handler=self._on_status,
            )
            self._status = ended.status
        finally:
            results.close()
            connected.close()

    def _event(self, event: dict[str, Any]) -> bool:
        self.events.append(event)
        return True

    def _on_status(self, status: dict[str, Any], runner_config: object) -> None:
        self.explanation += "".join(
            str(status[key]) for key in ("job_explanation", "result_traceback") if key in status
        )

    @property
    def over(self) -> bool:
        """Whether all of its results were read."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        self._thread.join(seconds)

    def kill(self) -> None:
        """Kill its container; its worker continues and reports that."""
        if not self.over:
            folder = self.mesh.folder / "bin"
            words = [str(folder / "podman"), "kill", f"ansible_runner_{self.number}"]
            # It may end meanwhile.
            subprocess.run(words, env={**os.environ, "KUBEWIN_CONTAINERS": str(folder)}, check=False)

    def cancel(self) -> None:
        """Have it ended as AWX does: SIGTERM for the worker, which kills the container."""
        control = self.mesh.control
        control.simple_command(f"work cancel {self.unit}")
        control.close()

    def finish(self) -> Job:
        """Wait for the end, and have Receptor forget the job."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), f"job {self.number} did not end within {PATIENCE:.0f} s"
        control = self.mesh.control
        control.simple_command(f"work release {self.unit}")
        control.close()
        artifacts = self.folder / "artifacts" / str(self.number)
        code = artifacts / "rc"
        return Job(
            self.number,
            self._status,
            int(code.read_text(encoding="utf-8")) if code.exists() else -1,
            tuple(self.events),
            self.explanation,
            artifacts,
        )


class Mesh:
    """One control node and NODES.

    control: name of the control node. images: the environment of others than IMAGE by their names. own: a folder that each of NODES has for itself,
    as it is a machine of its own.
    """

    def __init__(
        self,
        folder: Path,
        control: str = "control",
        images: Mapping[str, Mapping[str, str]] | None = None,
        own: Path | None = None,
    ) -> None:
        self.folder = folder
        self._ports = Ports()
        self._nodes: list[subprocess.Popen[bytes]] = []
        self._jobs = 0
        self._project = folder / "project"
        # A directory of the execution nodes that AWX exposes to jobs, at SUPPORT.
        self.support = folder / "support"
        self.support.mkdir(parents=True)
        ours = {"PATH": COMMANDS, "KUBEWIN_COLLECTIONS": str(_copy_links(folder / "collections"))}
        _write(self._images, json.dumps({IMAGE: ours, **(images or {})}))
        program = builds.build("receptor")["receptor"]
        port = self._ports.take("receptor")
        listener = {"tcp-listener": {"port": port, "bindaddr": "127.0.0.1"}}
        service = {"control-service": {"service": "control", "filename": str(self.socket)}}
        # AWX calls the work on its own node local.
        self._start(program, control, [listener, service, _work("local"), _work("ansible-runner")])
        # A peer that comes too early tries again only after 5 s.
        eventually(self.socket.exists, "the control node listens")
        for node in NODES:
            peer = {"tcp-peer": {"address": f"127.0.0.1:{port}"}}
            self._start(
                program, node, [peer, {"control-service": {"service": "control"}}, _work("ansible-runner")], own
            )
        try:
            eventually(self._complete, "the mesh is complete")
        except BaseException:
            self.stop()
            raise

    @property
    def socket(self) -> Path:
        """Where the control node is spoken to."""
        return self.folder / "control.sock"

    @property
    def _images(self) -> Path:
        return self.folder / "images.json"

    @property
    def control(self) -> Any:
        """A connection to the control node; each carries one command."""
        return ReceptorControl(str(self.socket))

    @property
    def executors(self) -> list[int]:
        """Processes of the execution nodes."""
        return [node.pid for node in self._nodes[1:]]

    def _start(self, program: Path, name: str, content: Sequence[Mapping[str, Any]], own: Path | None = None) -> None:
        folder = self.folder / name
        folder.mkdir(parents=True)
        node = [{"node": {"id": name, "datadir": str(folder)}}, {"log-level": "info"}, *content]
        (folder / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        config = self.folder / f"{name}.yml"
        config.write_text(yaml.safe_dump(node), encoding="utf-8")
        environment = {
            "PATH": f"{install(self.folder / 'bin')}:{COMMANDS}",
            "KUBEWIN_IMAGES": str(self._images),
            "KUBEWIN_CONTAINERS": str(self.folder / "bin"),
            "KUBEWIN_BOOT_ID": str(folder / "boot_id"),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
        }
        command = ["setpriv", "--pdeathsig", "TERM", str(program), "--config", str(config)]
        if own is not None:
            (folder / "own").mkdir()
            mounted = 'mount --bind "$1" "$2"; shift 2; exec "$@"'
            within = ["unshare", "--map-root-user", "--mount", "sh", "-ec", mounted, "sh"]
            command = [*within, str(folder / "own"), str(own), *command]
        with open(self.folder / f"{name}.log", "wb") as log:
            self._nodes.append(
                subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )

    def _complete(self) -> bool:
        assert all(node.poll() is None for node in self._nodes), "a Receptor node ended"
        if not self.socket.exists():
            return False
        control = self.control
        status = control.simple_command("status")
        control.close()
        return set(NODES) <= set(status.get("RoutingTable") or {})

    def stop(self) -> None:
        """End every node."""
        for node in self._nodes:
            node.terminate()
        for node in self._nodes:
            node.wait()
        self._ports.close()

    def launch(
        self,
        playbook: str,
        inventory: Mapping[str, Any],
        credential: Credential,
        answers: Mapping[str, Any],
        *,
        node: str = NODES[0],
        words: Sequence[str] = (),
        files: Mapping[str, str] | None = None,
    ) -> Running:
        """Submit a job of a playbook of the project. answers: of the survey; words: arguments that the template adds; files: of the project."""
        self._jobs += 1
        number = self._jobs
        folder = self.folder / "jobs" / str(number)
        worker = self.folder / "work" / str(number)
        worker.mkdir(parents=True)
        shutil.copytree(PROJECT, folder / "project")
        for name, content in (files or {}).items():
            (folder / "project" / name).write_text(content, encoding="utf-8")
        _write(
            folder / "inventory" / "hosts",
            f"#!/usr/bin/env python3\nprint({json.dumps(json.dumps(inventory))})\n",
            0o700,
        )
        _write(folder / "env" / "extravars", extra_variables(number, answers))
        _write(folder / "env" / "authority", credential.authority)
        _write(folder / "env" / "cmdline", " ".join(["-u", credential.user, "--ask-pass", *words]))
        with tempfile.TemporaryFile() as transmitted:
            self._transmit(folder, number, playbook, credential, transmitted)
            shutil.rmtree(folder / "env")
            transmitted.seek(0)
            submitted = self.control.submit_work(
                "ansible-runner",
                io.BufferedReader(io.FileIO(os.dup(transmitted.fileno()))),
                node=node,
                params={"params": f"--private-data-dir={worker}"},
            )
        return Running(self, number, folder, submitted["unitid"])

    def _transmit(self, folder: Path, number: int, playbook: str, credential: Credential, output: IO[bytes]) -> None:
        ansible_runner.interface.run(
            streamer="transmit",
            _output=output,
            private_data_dir=str(folder),
            ident=str(number),
            playbook=playbook,
            passwords={SSH_PROMPT: credential.password},
            envvars={
                "ANSIBLE_INVENTORY_UNPARSED_FAILED": "True",
                "JOB_ID": str(number),
                "K8S_AUTH_HOST": credential.host,
                "K8S_AUTH_API_KEY": credential.token,
                "K8S_AUTH_VERIFY_SSL": "True",
                "K8S_AUTH_SSL_CA_CERT": "/runner/env/authority",
            },
            process_isolation=True,
            process_isolation_executable="podman",
            container_image=IMAGE,
            container_volume_mounts=[f"{ROOT}:{ROOT}:ro", f"{self.support}:{SUPPORT}:rw"],
            settings={"pexpect_timeout": 1, "suppress_ansible_output": True},
            suppress_env_files=True,
        )


def _copy_links(folder: Path) -> Path:
    """A folder of the collections that does not lie in the checkout."""
    for link in (ROOT / ".collections" / "ansible_collections").glob("*/*"):
        copy = folder / "ansible_collections" / link.parent.name / link.name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.symlink_to(link.resolve())
    return folder


def _work(kind: str) -> dict[str, Any]:
    """A kind of work of a node."""
    return {
        "work-command": {
            "worktype": kind,
            "command": "ansible-runner",
            "params": "worker",
            "allowruntimeparams": True,
        }
    }


def _write(path: Path, content: str, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)


def made(event: Mapping[str, Any]) -> float:
    """When an event was made, in seconds since 1970."""
    return datetime.fromisoformat(event["created"]).timestamp()


def extra_variables(number: int, answers: Mapping[str, Any]) -> str:
    """The file of extra variables: AWX's own, and answers of a survey, which AWX marks so that they are no templates."""
    given = {"awx_job_id": number, "tower_job_id": number, "awx_user_name": "admin", "tower_user_name": "admin"}
    lines = [f"{name}: {json.dumps(value)}" for name, value in given.items()]
    return "\n".join([*lines, *(f"{name}: !unsafe {json.dumps(value)}" for name, value in answers.items())]) + "\n"


def needles(secret: str) -> list[bytes]:
    """How a secret may be written: in clear, as UTF-16, and in base64 of both, wherever it begins there."""
    found = []
    for plain in (secret.encode(), secret.encode("utf-16-le")):
        found.append(plain)
        for before in range(3):
            encoded = base64.b64encode(b"\0" * before + plain)
            # Characters at both ends depend on the neighbours as well.
            found.append(encoded[-(-8 * before // 6) : (8 * (before + len(plain))) // 6])
    return found


def leaks(folder: Path, secrets: Sequence[str]) -> list[str]:
    """Files below a folder that hold a secret. What ansible-runner writes of a job's environment is not checked: AWX keeps none of it."""
    wanted = [needle for secret in secrets for needle in needles(secret)]
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("command", "env.list")]
    return [str(path.relative_to(folder)) for path in files if any(needle in path.read_bytes() for needle in wanted)]


class Watch:
    """Reads the command lines of all processes while a block runs."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self.reads = 0
        self.found: list[str] = []
        self._wanted = [needle for secret in secrets for needle in needles(secret)]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._over.wait(0.3):
            self.reads += 1
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    line = path.read_bytes()
                    if any(needle in line for needle in self._wanted):
                        self.found.append(line.split(b"\0", 1)[0].decode(errors="replace"))
