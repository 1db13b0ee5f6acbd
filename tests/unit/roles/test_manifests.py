# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every driver's manifest in every mode: reviewed, valid for every Kubernetes, and living beside every other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.manifests import read_request
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers import declared
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from unit.roles import schemas
from unit.roles.manifests import FOLDER, Case, cases

ALL = tuple(cases())
NEWEST = tuple(cases(1))
ALL_NAMES = {case.name for case in ALL}
DAEMON_SETS = {case.name: case.daemon_set() for case in NEWEST}
# Fields that the API server refuses in a pod of which it knows that it is for Windows.
LINUX_ONLY_POD = {
    "appArmorProfile", "fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsUser", "seLinuxOptions", "seccompProfile",
    "supplementalGroups", "supplementalGroupsPolicy", "sysctls",
}  # fmt: skip
LINUX_ONLY_CONTAINER = {
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem",
    "runAsGroup", "runAsUser", "seLinuxOptions", "seccompProfile",
}  # fmt: skip
# Options of driver_info that decide what is planned, not what its manifest has.
PLANNED = {
    "mode", "version", "namespace", "create_cluster_objects", "allow_version_skew", "csi_proxy_managed", "max_unavailable",
}  # fmt: skip
DEFAULTS = {"replace": ""} | {
    name: option.default for name, (_role, option) in declared.list_module_options(declared.INFO).items()
}
# A value of each other option, another one than its default.
CHANGES: dict[str, Any] = {
    "images": {"driver": "registry.example.com/driver:v1"},
    "image_mirror": "registry.example.com",
    "image_digests": {"driver": f"sha256:{'0' * 64}"},
    "image_pull_secrets": ["mirror"],
    "kubelet_dir": "D:\\kubelet",
    "tolerations": [{"key": "team", "operator": "Exists"}],
    "node_selector": {"team": "storage"},
    "priority_class": "storage-critical",
    "resources": {"driver": {"requests": {"cpu": "1"}}},
    "storage_class": {"name": "other", "parameters": {"source": "//server/share"}},
}


def name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("option", sorted(DEFAULTS.keys() - PLANNED - {"replace"}))
def test_an_option_reaches_the_manifest_of_every_driver(option: str) -> None:
    assert option in CHANGES, f"add a value of {option} to CHANGES in this file"
    wanted, default = read_request({**DEFAULTS, option: CHANGES[option]}), read_request(DEFAULTS)
    unchanged = [case.name for case in NEWEST if case.objects(wanted=wanted) == case.objects(wanted=default)]
    assert not unchanged, f"use plan.options.{option} in the templates of these drivers and modes"


@pytest.mark.parametrize("option", sorted(name for name, option in declared.OPTIONS.items() if option.suboptions))
@pytest.mark.parametrize("is_set", [True, False])
def test_a_suboption_that_is_not_set_is_absent_from_the_request(option: str, is_set: bool) -> None:
    variables = {"driver": "smb", **({option: CHANGES[option]} if is_set else {})}
    validated = ArgumentSpecValidator(declared.make_argument_spec(declared.INFO)).validate(variables)
    request = read_request({"replace": "", **validated.validated_parameters})
    value = request.options[option] if option in request.options else getattr(request, option)
    defaults = {
        name for name, part in declared.OPTIONS[option].suboptions.items() if part.default not in (None, "", [], {})
    }
    assert value.keys() == defaults | (CHANGES[option].keys() if is_set else set())
    assert None not in value.values()
    assert declared.OPTIONS[option].default == {}


@pytest.mark.parametrize("case", ALL, ids=name)
def test_the_manifest_is_the_reviewed_one(case: Case) -> None:
    reviewed = (FOLDER / f"{case.name}.manifest").read_text(encoding="utf-8")
    assert case.render() == reviewed, (
        "after an intended change, write the manifests again: see CONTRIBUTING.md, Drivers and templates"
    )


def test_no_reviewed_manifest_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*-*-*.manifest")} == {case.name for case in ALL}


def test_every_mode_of_every_driver_has_a_template() -> None:
    shown = {(case.driver.key, case.rule.mode) for case in NEWEST}
    assert shown == {(driver.key, rule.mode) for driver in DRIVERS.values() for rule in driver.modes}


@pytest.mark.parametrize("minor", schemas.MINORS)
@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_it_is_valid_for_every_kubernetes_with_a_schema(case: Case, minor: int) -> None:
    wanted = DriverRequest(image_pull_secrets=("mirror",))
    for item in case.objects(f"1.{minor}.0", wanted, namespace=True):
        schemas.validate(item, minor)


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_it_names_windows_and_no_field_of_linux(case: Case) -> None:
    pod = pod_of(case)
    assert pod["os"] == {"name": "windows"}
    assert not LINUX_ONLY_POD & set(pod.get("securityContext", {}))
    assert not {"hostPID", "hostIPC", "shareProcessNamespace"} & set(pod)
    for container in containers(pod):
        assert not LINUX_ONLY_CONTAINER & set(container.get("securityContext", {})), container["name"]


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_its_mode_is_what_the_pod_does(case: Case) -> None:
    pod = pod_of(case)
    pipes = [volume for volume in pod.get("volumes", []) if "\\pipe\\" in volume.get("hostPath", {}).get("path", "")]
    if case.rule.mode == "host_process":
        assert pod["securityContext"]["windowsOptions"] == {
            "hostProcess": True,
            "runAsUserName": "NT AUTHORITY\\SYSTEM",
        }
        assert pod["hostNetwork"] is True
        assert pipes == []
        # A HostProcess container finds its program by name only: an image's entry point is a path inside the image.
        assert all(container["command"][0].endswith(".exe") for container in containers(pod))
        assert "\\\\.\\pipe" not in str(pod)
    else:
        assert "securityContext" not in pod
        assert "hostNetwork" not in pod
        wanted = {f"\\\\.\\pipe\\{pipe}" for pipe in case.rule.all_pipes}
        assert {volume["hostPath"]["path"] for volume in pipes} == wanted
        driver = next(one for one in pod["containers"] if one["name"] == case.driver.container)
        assert wanted <= {mount["mountPath"] for mount in driver["volumeMounts"]}


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_the_registrar_gives_the_kubelet_a_path_of_the_host(case: Case) -> None:
    registrar = next(one for one in pod_of(case)["containers"] if "registrar" in one["name"])
    env = {one["name"]: one.get("value", "") for one in registrar.get("env", [])}
    argument = next(one for one in registrar["args"] if one.startswith("--kubelet-registration-path="))
    path = argument.partition("=")[2]
    for key, value in env.items():
        path = path.replace(f"$({key})", value)
    assert single(path) == f"C:\\var\\lib\\kubelet\\plugins\\{case.driver.name}\\csi.sock"


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_another_kubelet_directory_is_followed_everywhere(case: Case) -> None:
    pod = case.pod(DriverRequest(kubelet_dir="D:\\kube let's"))
    assert "var\\lib\\kubelet" not in single(str(pod))
    assert "D:" in str(pod)


@pytest.mark.parametrize("case", NEWEST, ids=name)
@pytest.mark.parametrize("value", ['a"b', "a: b # c", "{{ x }}", "line\nbreak"])
def test_no_value_can_leave_its_place(case: Case, value: str) -> None:
    toleration = {"key": "pool", "value": value}
    assert case.pod(DriverRequest(tolerations=(toleration,)))["tolerations"] == [toleration]


@pytest.mark.parametrize(("one", "other"), tuple(combinations(NEWEST, 2)), ids=name)
def test_two_drivers_share_a_node(one: Case, other: Case) -> None:
    if one.driver is other.driver:
        assert daemon_set(one)["metadata"]["name"] == daemon_set(other)["metadata"]["name"], "one replaces the other"
        return
    assert not host_ports(one) & host_ports(other)
    assert not own_directories(one) & own_directories(other)
    for key in ("metadata.name", "spec.selector"):
        assert at(daemon_set(one), key) != at(daemon_set(other), key)
    selector = daemon_set(one)["spec"]["selector"]["matchLabels"]
    labels = daemon_set(other)["spec"]["template"]["metadata"]["labels"]
    assert not selector.items() <= labels.items()
    assert one.driver.service_account != other.driver.service_account


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_containers_mount_existing_volumes_and_listen_on_the_catalogs_ports(case: Case) -> None:
    pod = pod_of(case)
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    for container in containers(pod):
        assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes, container["name"]
    # livenessprobe listens on 9808 by default.
    assert set(case.rule.ports.values()) <= listening(case) | {9808}


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_images_are_those_of_the_containers(case: Case) -> None:
    assert set(case.settings()["images"].values()) == {one["image"] for one in containers(pod_of(case))}


# Labels of pods that upstream's own DaemonSets for Linux have: a selector of ours that fits them would fight over them.
UPSTREAM_LINUX_PODS: tuple[dict[str, str], ...] = (
    {"app": "ebs-csi-node", "app.kubernetes.io/name": "aws-ebs-csi-driver"},
    {"app": "gcp-compute-persistent-disk-csi-driver"},
    {"app": "vsphere-csi-node", "role": "vsphere-csi"},
    {"app": "csi-azuredisk-node"},
    {"app": "csi-azurefile-node"},
    {"app": "csi-smb-node"},
)


@pytest.mark.parametrize("case", NEWEST, ids=name)
def test_the_selector_fits_no_pod_of_upstreams_linux_daemon_sets(case: Case) -> None:
    selector = daemon_set(case)["spec"]["selector"]["matchLabels"]
    assert not any(selector.items() <= labels.items() for labels in UPSTREAM_LINUX_PODS)


def test_azure_disk_gets_no_hook_before_it_has_one() -> None:
    hooks = {
        case.version: "lifecycle" in case.pod()["containers"][1]
        for case in cases(99)
        if (case.driver.key, case.rule.mode) == ("azure_disk", "host_process")
    }
    assert set(hooks.values()) == {True, False}
    assert all(hook == (int(version.split(".")[1]) >= 32) for version, hook in hooks.items())


@pytest.mark.parametrize("case", [case for case in cases(99) if case.name not in ALL_NAMES], ids=name)
def test_every_release_renders_its_own_image(case: Case) -> None:
    images = [one["image"] for one in case.pod()["containers"]]
    assert [image for image in images if f":v{case.version}" in image]


def daemon_set(case: Case) -> dict[str, Any]:
    """Its DaemonSet, rendered once."""
    return DAEMON_SETS[case.name]


def pod_of(case: Case) -> dict[str, Any]:
    """The pod spec of its DaemonSet."""
    spec: dict[str, Any] = daemon_set(case)["spec"]["template"]["spec"]
    return spec


def containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """All containers of a pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]


def words(pod: dict[str, Any]) -> list[str]:
    """Arguments and variables of the containers, values of arguments without their flag."""
    reported = [word for one in containers(pod) for word in [*one.get("args", []), *one.get("command", [])]]
    reported += [word.partition("=")[2] for word in reported]
    return reported + [str(entry.get("value", "")) for one in containers(pod) for entry in one.get("env", [])]


def single(path: str) -> str:
    """A path whose backslashes may be doubled."""
    while "\\\\" in path:
        path = path.replace("\\\\", "\\")
    return path


def host_ports(case: Case) -> set[int]:
    """Ports of the node: a HostProcess pod has the node's network."""
    return listening(case) if case.rule.mode == "host_process" else set()


def listening(case: Case) -> set[int]:
    """Ports that its containers declare or listen on by an argument."""
    declared = {int(one["containerPort"]) for part in pod_of(case)["containers"] for one in part.get("ports", [])}
    reported = {
        int(word.strip('"').rpartition(":")[2] if ":" in word else word.partition("=")[2])
        for part in pod_of(case)["containers"]
        for word in part.get("args", [])
        if word.startswith(("--http-endpoint=", "--health-port=", "--metrics-address="))
    }
    return declared | reported


def own_directories(case: Case) -> set[str]:
    """Directories of the host that no other driver may write to: below the kubelet's plugins, and named in words."""
    pod = pod_of(case)
    paths = [volume["hostPath"]["path"] for volume in pod.get("volumes", []) if "hostPath" in volume]
    found = {single(path).rstrip("\\") for path in [*paths, *words(pod)] if "\\plugins\\" in single(path)}
    return {path for path in found if not path.endswith("kubernetes.io\\csi")}


def at(value: dict[str, Any], path: str) -> Any:
    """A value by its path."""
    inner: Any = value
    for key in path.split("."):
        inner = inner[key]
    return inner
