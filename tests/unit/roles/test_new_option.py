# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An option for all drivers, added to a copy of the collection: two files change by hand, and a command writes the rest."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

ROOT = Path(__file__).parents[3]
DECLARED, TEMPLATE = "plugins/plugin_utils/drivers/declared.py", "roles/csi_driver/templates/node.yaml.j2"
BY_HAND = {
    DECLARED: (
        "OPTIONS: dict[str, DriverOption] = {\n",
        '    "min_ready": DriverOption("Seconds until a Ready plugin pod is available.", "int", default=30, since="1.1.0"),\n',
    ),
    TEMPLATE: (
        "    type: OnDelete\n",
        "  minReadySeconds: {{ plan.options.min_ready | to_json }}\n",
    ),
}
# From the variable to the manifest, as the action and the planner pass it on.
RENDER = """
import json, sys
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.kubewin.csi.plugins.action import driver_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import driver_options
from unit.roles.manifests import cases
given = driver_options.read_module_options("driver_info", "smb", {"smb_csi_min_ready": "45"}.get)
spec = driver_info.ActionModule.argument_spec
params = ArgumentSpecValidator(spec).validate({"driver": "smb", **given}).validated_parameters
requests = (driver_info.read_request(params), None)
print(json.dumps([
    [sorted({case.daemon_set(wanted)["spec"]["minReadySeconds"] for case in cases()}) for wanted in requests],
    driver_options.list_wrong_options("smb", {"smb_csi_min_ready": "soon"}),
]))
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with the option, in which the command has run."""
    made = tmp_path_factory.mktemp("option") / "ansible_collections" / "kubewin" / "csi"
    for name in ("extensions", "meta", "plugins", "roles", "tests/unit/roles"):
        shutil.copytree(ROOT / name, made / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "galaxy.yml", made)
    collections = made.parents[1]
    (collections / "kubernetes").symlink_to(ROOT / ".collections" / "ansible_collections" / "kubernetes")
    for name, (after, line) in BY_HAND.items():
        text = (made / name).read_text(encoding="utf-8")
        assert text.count(after) == 1
        (made / name).write_text(text.replace(after, after + line), encoding="utf-8")
    run(made, sys.executable, "-m", "unit.roles.specs")
    return made


def run(copy: Path, *command: str) -> str:
    """The output of a command that has only the copy."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment |= {
        "PYTHONPATH": f"{copy.parents[2]}{os.pathsep}{copy / 'tests'}", "ANSIBLE_COLLECTIONS_PATH": str(copy.parents[2]),
    }  # fmt: skip
    done = subprocess.run(command, env=environment, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_declaration_and_the_template_that_uses_it_change(copy: Path) -> None:
    changed = {
        str(path.relative_to(copy))
        for path in copy.rglob("*")
        if path.is_file()
        and "__pycache__" not in path.parts
        and not filecmp.cmp(path, ROOT / path.relative_to(copy), shallow=False)
    }
    assert changed - set(BY_HAND) == {f"roles/{driver}_csi/meta/argument_specs.yml" for driver in DRIVERS}
    assert len(BY_HAND) == 2


def test_the_option_reaches_each_drivers_manifest_and_the_check_of_inputs(copy: Path) -> None:
    rendered, wrong = json.loads(run(copy, sys.executable, "-c", RENDER))
    assert rendered == [[45], [30]]
    assert len(wrong) == 1
    assert "smb_csi_min_ready" in wrong[0]


@pytest.mark.parametrize(
    ("kind", "name", "option"),
    [("module", "driver_info", "min_ready"), ("role", "vsphere_csi", "vsphere_csi_min_ready")],
)
def test_it_is_documented(copy: Path, kind: str, name: str, option: str) -> None:
    program = str(Path(sys.executable).parent / "ansible-doc")
    found = json.loads(run(copy, program, "--json", "-t", kind, f"kubewin.csi.{name}"))[f"kubewin.csi.{name}"]
    options = found["doc"]["options"] if kind == "module" else found["entry_points"]["main"]["options"]
    assert (options[option]["type"], options[option]["default"]) == ("int", 30)
