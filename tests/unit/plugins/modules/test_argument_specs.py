# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is documented is what is accepted: names, types, choices, defaults, required, aliases, and nested options.

Sanity's own check does not see the options of action plugins, and believes a module's.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import CLUSTER_ARG_SPEC

ROOT = Path(__file__).parents[4]
MODULES = sorted(path.stem for path in (ROOT / "plugins" / "modules").glob("*.py"))
PLUGINS = "ansible_collections.kubewin.csi.plugins"


@cache
def documentation() -> dict[str, Any]:
    """Every module's documentation, its fragments filled in."""
    names = [f"kubewin.csi.{name}" for name in MODULES]
    command = [str(Path(sys.executable).parent / "ansible-doc"), "--json", "-t", "module", *names]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections")}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def accepted(name: str) -> dict[str, Any]:
    """The argument spec of the action."""
    action = importlib.import_module(f"{PLUGINS}.action.{name}")
    if issubclass(action.ActionModule, ClusterAction):
        return {**CLUSTER_ARG_SPEC, **action.ActionModule.argument_spec}
    return dict(getattr(action, "ARGUMENT_SPEC", None) or action.ActionModule.argument_spec)


def shape(options: dict[str, Any], nested: str) -> dict[str, Any]:
    """The parts of options that decide what is accepted, with Ansible's defaults for what is not set."""
    return {
        name: {
            "type": option.get("type") or "str",
            "elements": option.get("elements"),
            "required": bool(option.get("required", False)),
            "default": option.get("default"),
            "choices": sorted(option.get("choices") or []),
            "aliases": sorted(option.get("aliases") or []),
            "options": shape(option.get(nested) or {}, nested),
        }
        for name, option in options.items()
    }


@pytest.mark.parametrize("name", MODULES)
def test_documented_is_accepted(name: str) -> None:
    documented = documentation()[f"kubewin.csi.{name}"]["doc"]["options"]
    assert shape(accepted(name), "options") == shape(documented, "suboptions")


def test_the_action_group_holds_every_module_that_talks_to_a_cluster() -> None:
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    talking = [
        name for name in MODULES if "kubeconfig" in documentation()[f"kubewin.csi.{name}"]["doc"].get("options", {})
    ]
    assert sorted(runtime["action_groups"]["cluster"]) == talking


def test_the_catalog_reaches_where_modules_run(tmp_path: Path) -> None:
    """A module is sent with what it imports by name; a driver that is only found in a folder would be missing there."""
    playbook = tmp_path / "none.yml"
    playbook.write_text(
        "- hosts: localhost\n  gather_facts: false\n  tasks:\n    - kubewin.csi.driver_info: {driver: none}\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"), "ANSIBLE_NOCOLOR": "1"}
    environment.pop("PYTHONPATH", None)
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(playbook)]
    command += ["-e", f"ansible_python_interpreter={sys.executable}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    drivers = sorted(path.stem for path in (ROOT / "plugins/plugin_utils/catalog/drivers").glob("[a-z]*.py"))
    assert f"value of driver must be one of: {', '.join(drivers)}, got: none" in done.stdout + done.stderr
