"""`make demo`: the lab, the playbook on it, and commands to inspect the result."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from . import paths
from .parts import Bench, environment
from .venvs import Notify

# The name that `python -m lab` takes by default, so that both ways speak of one lab.
LAB = "default"


def state() -> Path:
    """The demo lab's folder."""
    return paths.ROOT / ".lab" / LAB


def lab(bench: Bench, *words: str) -> int:
    """Runs the lab's own command line, its output unchanged."""
    command = [str(bench.main.python), "-m", "lab", *words]
    return subprocess.run(
        command, check=False, cwd=paths.ROOT, env={**os.environ, **environment(bench.main)}
    ).returncode


def up(bench: Bench, notify: Notify) -> int:
    """Starts the lab (or finds it running), runs the playbook on it, and prints the next commands."""
    started = time.monotonic()
    code = lab(bench, "up", "--name", LAB, "--demo")
    if code:
        notify(
            f"the lab did not start; its logs are in {paths.short(state() / 'logs')}, `make down` removes what is left"
        )
        return code
    notify(f"the lab is up after {time.monotonic() - started:.0f} s")
    inventory = paths.short(state() / "inventory" / "ntlm-http.yml")
    command = [str(bench.main.bin / "ansible-playbook"), "-i", inventory, "playbooks/enable-csi.yml"]
    notify(f"$ ansible-playbook {' '.join(command[1:])}")
    playing = time.monotonic()
    code = subprocess.run(
        command,
        check=False,
        cwd=paths.ROOT,
        env={**os.environ, **environment(bench.main), "ANSIBLE_FORCE_COLOR": colour()},
    ).returncode
    notify(f"the playbook took {time.monotonic() - playing:.0f} s, everything {time.monotonic() - started:.0f} s")
    if code:
        notify(
            f"the playbook failed; inspect the lab with the commands below; logs are in {paths.short(state() / 'logs')}"
        )
    print(explain(bench, inventory), flush=True)
    return code


def colour() -> str:
    """Colours on a terminal."""
    return "1" if os.isatty(1) and not os.environ.get("NO_COLOR") else "0"


def explain(bench: Bench, inventory: str) -> str:
    """Commands to inspect, continue and stop."""
    play = f"ansible-playbook -i {inventory} -e kubewin_kubeconfig=$KUBECONFIG"
    return f"""
Inspect the lab, in this directory:
  make status                       what runs, where its logs are
  make demo                         once more: the lab is reused, and the playbook changes nothing
  . {paths.short(bench.main.bin)}/activate
  ansible-playbook -i {inventory} playbooks/status.yml
  ansible-playbook -i {inventory} playbooks/verify.yml
  ansible-playbook -i {inventory} playbooks/enable-csi.yml --check
  ansible -i {inventory} windows -m kubewin.csi.csi_proxy_info
  export KUBECONFIG=$PWD/{paths.short(state() / "kubeconfig" / "admin.yaml")}        for kubectl, and for the next commands
The commands of the guides work here with -i {inventory} in place of -i inventory.yml.
Add a second driver and remove it, as the cluster's administrator:
  {play} playbooks/enable-csi.yml -e kubewin_drivers=vsphere,smb -e kubewin_create_cluster_objects=true
  {play} playbooks/remove.yml -e kubewin_drivers=smb
Stop:
  make down
"""


def down(bench: Bench) -> int:
    """Stops the demo lab."""
    return lab(bench, "down", "--name", LAB)


def status(bench: Bench) -> int:
    """Prints which parts of the demo lab run."""
    return lab(bench, "status", "--name", LAB)
