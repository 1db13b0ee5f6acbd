# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Each driver has a thin role: the same options as every other, and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.declared import OPTIONS
from unit.roles import schemas, specs

ROLES = Path(__file__).parents[3] / "roles"
EXAMPLE = ROLES / "csi_driver" / "files" / "example.yaml"
drivers = pytest.mark.parametrize("driver", DRIVERS.values(), ids=lambda driver: str(driver.key))


def role(driver: Driver) -> Path:
    return ROLES / f"{driver.key}_csi"


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_every_role_of_a_driver_has_its_driver() -> None:
    assert {path.name for path in ROLES.glob("*_csi")} == {f"{key}_csi" for key in DRIVERS}


@drivers
def test_its_specification_matches_the_declaration(driver: Driver) -> None:
    """Ansible reads the file; `python -m unit.roles.specs` writes it."""
    path = role(driver) / "meta" / "argument_specs.yml"
    assert path.read_text(encoding="utf-8") == specs.text(driver)
    modes = {rule.mode for rule in driver.modes}
    ((entry, specification),) = read(path)["argument_specs"].items()
    assert entry == "main"
    assert set(specification["options"]) == {f"{driver.key}_csi_{name}" for name in OPTIONS}
    assert set(specification["options"][f"{driver.key}_csi_mode"]["choices"]) == {"", "auto", *modes}


@drivers
def test_it_holds_what_is_its_own_and_calls_the_role_that_does_the_work(driver: Driver) -> None:
    assert {path.name for path in role(driver).iterdir()} == {"README.md", "meta", "tasks"}
    (task,) = read(role(driver) / "tasks" / "main.yml")
    assert task["ansible.builtin.import_role"]["name"] == "kubewin.csi.csi_driver"
    assert task["vars"] == {"csi_driver_name": driver.key}


def test_no_file_of_a_role_equals_that_of_another() -> None:
    texts = [path.read_bytes() for path in ROLES.glob("*_csi/**/*") if path.is_file()]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("minor", [25, 31, 37])
def test_the_example_is_valid(minor: int) -> None:
    for item in example():
        schemas.validate(item, minor)


def test_the_example_fits_together() -> None:
    by_kind = {item["kind"]: item for item in example()}
    claim, workload = by_kind["PersistentVolumeClaim"], by_kind["Deployment"]
    assert claim["spec"]["storageClassName"] == DRIVERS["vsphere"].storage_class.name
    pod = workload["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "windows"}
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    placed = {item["metadata"]["namespace"] for item in example() if "namespace" in item["metadata"]}
    assert placed == {by_kind["Namespace"]["metadata"]["name"]}


@drivers
def test_its_page_names_what_it_makes(driver: Driver) -> None:
    page = (role(driver) / "README.md").read_text(encoding="utf-8")
    wanted = (
        driver.name,
        driver.daemonset,
        driver.service_account,
        driver.storage_class.name,
        driver.controller.deployments[0],
    )
    assert not [word for word in wanted if f"`{word}`" not in page]


def example() -> list[dict[str, Any]]:
    """The objects of the example."""
    items: list[dict[str, Any]] = read(EXAMPLE)["items"]
    return items
