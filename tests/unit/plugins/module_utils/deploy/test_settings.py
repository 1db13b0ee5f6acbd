# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What templates get to read: every path filled in, every wish merged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.settings import settings
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import Wanted

FORMS = [(driver, rule) for driver in DRIVERS.values() for rule in driver.modes]
forms = pytest.mark.parametrize(("driver", "rule"), FORMS, ids=[f"{one.key} {rule.mode}" for one, rule in FORMS])


def made(driver: Driver, rule: ModeRule, wanted: Wanted | None = None, version: str | None = None) -> dict[str, Any]:
    newest = max(parse(known.version) for known in driver.releases if rule.covers(parse(known.version)))
    return settings(
        driver,
        wanted or Wanted(),
        rule,
        parse(version) if version else newest,
        "somewhere",
        parse("v1.34.1"),
        create_namespace=False,
        create_csi_driver=False,
        create_feature_states=False,
    )


def environment(container: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in container["env"]}


@forms
def test_every_path_is_filled_in_and_everything_is_json(driver: Driver, rule: ModeRule) -> None:
    text = json.dumps(made(driver, rule, Wanted(kubelet_dir="D:\\kubelet\\")))
    assert "{kubelet" not in text
    assert "lib" + "\\\\" + "kubelet" not in text
    assert "D:" in text


@forms
def test_the_kubelet_is_told_a_path_on_the_host(driver: Driver, rule: ModeRule) -> None:
    registrar = made(driver, rule)["containers"]["registrar"]
    told = [environment(registrar).get("DRIVER_REG_SOCK_PATH", ""), *registrar["args"]]
    socket = ["C:", "var", "lib", "kubelet", "plugins", driver.name, "csi.sock"]
    paths = [word.partition("path=")[2] or word for word in told]
    assert socket in [path.replace("\\\\", "\\").split("\\") for path in paths]


@forms
def test_host_process_forms_register_where_the_kubelet_looks(driver: Driver, rule: ModeRule) -> None:
    found = made(driver, rule)
    registrar = found["containers"]["registrar"]
    assert found["host_process"] == (rule.mode == "host_process")
    assert ("--plugin-registration-path=$(PLUGIN_REG_DIR)" in registrar["args"]) == found["host_process"]
    assert bool(registrar["command"]) == found["host_process"]
    assert bool(found["pipes"]) != found["host_process"]


@forms
def test_the_log_level_reaches_the_driver_and_nobody_else(driver: Driver, rule: ModeRule) -> None:
    plain, loud = (made(driver, rule, Wanted(log_level=level)) for level in (None, "9"))
    assert plain["containers"]["driver"] != loud["containers"]["driver"]
    assert plain["containers"]["registrar"] == loud["containers"]["registrar"]


@forms
def test_resources_are_upstreams_until_others_are_given(driver: Driver, rule: ModeRule) -> None:
    upstream = {role: entry.resources for role, entry in rule.containers.items() if entry.resources}
    given = {"limits": {"memory": "2Gi"}}
    assert made(driver, rule)["resources"] == upstream
    assert made(driver, rule, Wanted(resources={"driver": given}))["resources"] == {**upstream, "driver": given}


@pytest.mark.parametrize(
    ("key", "mode", "version", "expected"),
    [
        ("smb", "host_process", "1.21.0", "registry.k8s.io/sig-storage/smbplugin:v1.21.0-windows-hp"),
        ("smb", "csi_proxy", "1.21.0", "registry.k8s.io/sig-storage/smbplugin:v1.21.0"),
        (
            "azure_disk",
            "host_process",
            "1.33.2",
            "mcr.microsoft.com/oss/kubernetes-csi/azuredisk-csi:v1.33.2-windows-hp",
        ),
        ("vsphere", "host_process", "3.7.4", "registry.k8s.io/csi-vsphere/driver:v3.7.4"),
        ("vsphere", "csi_proxy", "3.3.9", "registry.k8s.io/csi-vsphere/driver:v3.3.9"),
        ("aws_ebs", "csi_proxy", "1.39.0", "public.ecr.aws/ebs-csi-driver/aws-ebs-csi-driver:v1.39.0"),
    ],
)
def test_an_unlisted_release_takes_the_tag_of_its_mode(key: str, mode: str, version: str, expected: str) -> None:
    driver = DRIVERS[key]
    rule = next(one for one in driver.modes if one.mode == mode)
    assert made(driver, rule, version=version)["images"]["driver"] == expected


def test_a_mirror_replaces_the_registry_of_every_image() -> None:
    driver = DRIVERS["azure_disk"]
    found = made(driver, driver.modes[0], Wanted(image_mirror="mirror.example:8443/k8s/"))
    assert all(image.startswith("mirror.example:8443/k8s/oss/") for image in found["images"].values())
    assert set(found["images"]) == {"driver", "registrar", "liveness_probe"}


@forms
def test_images_are_those_of_the_containers(driver: Driver, rule: ModeRule) -> None:
    found = made(driver, rule)
    assert set(found["images"]) == set(found["containers"])
