# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The settings that templates read: paths are filled in, options are merged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.template_settings import make_settings

FORMS = [(driver, rule) for driver in DRIVERS.values() for rule in driver.modes]
forms = pytest.mark.parametrize(("driver", "rule"), FORMS, ids=[f"{one.key} {rule.mode}" for one, rule in FORMS])


def made(
    driver: Driver, rule: ModeRule, desired: DriverRequest | None = None, version: str | None = None
) -> dict[str, Any]:
    newest = max(parse(known.version) for known in driver.releases if rule.supports(parse(known.version)))
    return make_settings(
        driver,
        desired or DriverRequest(),
        rule,
        parse(version) if version else newest,
        "somewhere",
        parse("v1.34.1"),
        create_namespace=False,
        create_csi_driver=False,
        create_feature_states=False,
    )


@forms
def test_everything_is_json_and_the_kubelets_directory_ends_without_a_backslash(driver: Driver, rule: ModeRule) -> None:
    found = made(driver, rule, DriverRequest(kubelet_dir="D:\\kubelet\\"))
    assert json.loads(json.dumps(found)) == found
    assert found["kubelet_dir"] == "D:\\kubelet"


@forms
def test_a_form_has_pipes_or_is_a_host_process(driver: Driver, rule: ModeRule) -> None:
    found = made(driver, rule)
    assert bool(found["pipes"]) != (rule.mode == "host_process")


@forms
def test_resources_are_upstreams_until_others_are_given(driver: Driver, rule: ModeRule) -> None:
    given = {"limits": {"memory": "2Gi"}}
    assert made(driver, rule)["resources"] == rule.resources
    assert made(driver, rule, DriverRequest(resources={"driver": given}))["resources"] == {
        **rule.resources,
        "driver": given,
    }


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
    found = made(driver, driver.modes[0], DriverRequest(image_mirror="mirror.example:8443/k8s/"))
    assert all(image.startswith("mirror.example:8443/k8s/oss/") for image in found["images"].values())
    assert set(found["images"]) == {"driver", "registrar", "liveness_probe"}
