# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the report does not read is an assumption that the headline counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import BUILD_LABEL
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.pod_spec import find_dependencies
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_brief, render_terminal
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report, Target
from situations.base import VSPHERE, operator
from situations.cluster import SHOP, attach, claim_of, csi, healthy, install, pod_spec, smb, volume, workload
from situations.named import SITUATIONS
from situations.real_clusters import REAL_CLUSTERS
from situations.taken import PAIRS
from situations.world import World

# Of nodes that a cloud replaces with each release of its image.
IMAGE_LABEL = "eks.amazonaws.com/nodegroup-image"
MAIN = {"name": "main", "image": "registry.example.com/shop:1"}


def reported(**spec: Any) -> Report:
    """The healthy cluster with these fields in the template of one Deployment."""
    world = healthy()
    world.get("Deployment", "web", SHOP)["spec"]["template"]["spec"].update(spec)
    return evaluate(world.snapshot())


def assumed(report: Report) -> dict[str, str]:
    return {one.kind: one.message for one in report.assumptions}


def test_an_ordinary_cluster_has_three_assumptions_that_every_form_of_the_report_counts() -> None:
    report = evaluate(healthy().snapshot())
    assert [one.kind for one in report.assumptions] == ["admission", "room", "references"]
    assert {len(one.workloads) for one in report.assumptions} == {len(report.workloads)}
    assert render_terminal(report).startswith("READY, IF 3 ASSUMPTIONS HOLD: ")
    assert '<h2 id="verdict">Ready, if 3 assumptions hold</h2>' in render_html(report)
    assert render_brief(report)[0].startswith("Ready, if 3 assumptions hold: ")
    assert json.loads(json.dumps(report.as_dict()))["assumptions"][0]["workload_count"] == len(report.workloads)


def test_page_and_json_list_everything_that_an_assumption_counts() -> None:
    report = evaluate(REAL_CLUSTERS["eks"].world(trouble=False).snapshot())
    references = next(one for one in report.assumptions if one.kind == "references")
    names = next(one["names"] for one in report.as_dict()["assumptions"] if one["kind"] == "references")
    assert "8 images (" in references.message
    assert "and 5 more)" in references.message
    assert sum(name.startswith("image ") for name in names) == 8
    page = render_html(report)
    assert [name for name in names if f"<li>{name}</li>" not in page] == []


def test_that_replaced_nodes_have_csi_proxy_is_assumed_where_a_driver_uses_it() -> None:
    for target, is_assumed in ((Target(kubernetes="1.37"), True), (Target(), False)):
        report = evaluate(healthy().snapshot(), target)
        message = "1 service of Windows (csi-proxy on nodes that the upgrade replaces)"
        assert (message in assumed(report)["references"]) == is_assumed


@pytest.mark.parametrize(
    ("running", "target", "is_assumed"), [("1.36.3", "", False), ("1.36.3", "1.37", True), ("1.37.0", "", True)]
)
def test_a_kubernetes_that_is_newer_than_the_catalog_is_an_assumption(
    running: str, target: str, is_assumed: bool
) -> None:
    world = healthy().copy()
    world.kubernetes = f"v{running}"
    report = evaluate(world.snapshot(), Target(kubernetes=target))
    assert ("1 release of Kubernetes (1.37)" in assumed(report).get("release", "")) == is_assumed


@pytest.mark.parametrize(("server", "is_assumed"), [("first", True), ("second", False)])
def test_that_an_smb_server_has_one_user_is_assumed_where_its_shares_have_several_secrets(
    server: str, is_assumed: bool
) -> None:
    world = healthy()
    install(world, "smb", "csi_proxy")
    for name, host in (("one", "first"), ("two", server)):
        source = smb(name)
        source["csi"].update(volumeAttributes={"source": f"//{host}/{name}"})
        source["csi"]["nodeStageSecretRef"]["name"] = name
        volume(world, f"pv-{name}", source, name, accessModes=["ReadWriteMany"])
        workload(world, "Deployment", name, pod_spec(name), on=["win-1"])
    message = assumed(evaluate(world.snapshot()))["references"]
    assert ("1 SMB server with several Secrets (first)" in message) == is_assumed


@pytest.mark.parametrize(
    "place",
    [
        {"fieldOfTomorrow": True},
        {"containers": [{**MAIN, "fieldOfTomorrow": True}]},
        {"containers": [{**MAIN, "env": [{"name": "a", "valueFrom": {"fieldOfTomorrow": {}}}]}]},
        {"affinity": {"fieldOfTomorrow": {}}},
        {"volumes": [{"name": "v", "fieldOfTomorrow": {}}, *pod_spec("share")["volumes"]]},
        {
            "volumes": [
                {"name": "v", "projected": {"sources": [{"fieldOfTomorrow": {}}]}},
                *pod_spec("share")["volumes"],
            ]
        },
    ],
    ids=["pod", "container", "env", "affinity", "volume", "projected"],
)
def test_a_field_that_no_code_reads_is_an_assumption(place: dict[str, Any]) -> None:
    report = reported(**place)
    assert report.verdict == "ready"
    assert "fieldOfTomorrow" in assumed(report)["fields"]
    assert render_terminal(report).startswith("READY, IF 4 ASSUMPTIONS HOLD: ")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"volumes": [{"name": "v", "secret": {"secretName": "tls"}}]}, ("Secret", "shop/tls")),
        ({"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}, ("ConfigMap", "shop/settings")),
        ({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "tls"}}]}}]}, ("Secret", "shop/tls")),
        ({"volumes": [{"name": "v", "azureFile": {"secretName": "key", "shareName": "s"}}]}, ("Secret", "shop/key")),
        (
            {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "key"}}}]},
            ("Secret", "shop/key"),
        ),
        (
            {"volumes": [{"name": "v", "csi": {"driver": "d", "volumeAttributes": {"secretProviderClass": "vault"}}}]},
            ("SecretProviderClass", "shop/vault"),
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "C:\\logs", "type": "Directory"}}]},
            ("host path", "C:\\logs"),
        ),
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "\\\\.\\pipe\\docker_engine"}}]},
            ("host path", "\\\\.\\pipe\\docker_engine"),
        ),
        ({"runtimeClassName": "hyperv"}, ("runtime handler", "hyperv")),
        (
            {
                "containers": [
                    {**MAIN, "env": [{"name": "a", "valueFrom": {"secretKeyRef": {"name": "tls", "key": "a"}}}]}
                ]
            },
            ("Secret", "shop/tls"),
        ),
        (
            {"containers": [{**MAIN, "envFrom": [{"configMapRef": {"name": "settings"}}]}]},
            ("ConfigMap", "shop/settings"),
        ),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "one-gpu"}]}, ("device", "one-gpu")),
        ({"readinessGates": [{"conditionType": "example.com/reached"}]}, ("field", "spec.readinessGates")),
        (
            {"initContainers": [{"name": "init", "image": "registry.example.com/init:1"}]},
            ("image", "registry.example.com/init:1"),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_each_reference_of_a_pod_spec_is_found(spec: dict[str, Any], expected: tuple[str, str]) -> None:
    assert expected in find_dependencies(spec, SHOP)


def test_what_is_optional_or_always_there_is_no_dependency() -> None:
    spec = {
        "serviceAccountName": "default",
        "priorityClassName": "system-node-critical",
        "volumes": [
            {"name": "a", "secret": {"secretName": "tls", "optional": True}},
            {"name": "b", "configMap": {"name": "settings", "optional": True}},
            {"name": "c", "emptyDir": {}},
        ],
        "containers": [{"name": "main", "image": "i", "envFrom": [{"secretRef": {"name": "tls", "optional": True}}]}],
        "topologySpreadConstraints": [{"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    }
    assert find_dependencies(spec, SHOP) == (("image", "i"),)


def test_the_secret_of_a_share_is_assumed() -> None:
    share = evaluate(PAIRS["an_smb_share_without_secret"].world(wrong=False).snapshot())
    assert "2 Secrets (of PersistentVolume pv-share, of PersistentVolume pv-x)" in assumed(share)["references"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"flexVolume": {"driver": "microsoft.com/smb.cmd"}}, "flexVolume of PersistentVolume pv-x"),
        ({"hostPath": {"path": "C:\\data", "type": "Directory"}}, "1 host path (path of PersistentVolume pv-x)"),
    ],
    ids=["flexVolume", "hostPath"],
)
def test_what_a_volume_needs_of_its_node_is_assumed(source: dict[str, Any], expected: str) -> None:
    world = healthy().copy()
    volume(world, "pv-x", source, "x")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)
    assert expected in " ".join(assumed(evaluate(world.snapshot())).values())


def test_the_parameters_of_a_class_are_assumed_until_it_has_made_a_volume() -> None:
    world = healthy().copy()
    secret = {f"csi.storage.k8s.io/node-publish-secret-{part}": "${pvc.namespace}" for part in ("name", "namespace")}
    parameters = {"csi.storage.k8s.io/fstype": "ntfs", "diskformat": "thin", **secret}
    storage_class = world.add(
        "StorageClass", "made", provisioner=VSPHERE.name, parameters=parameters,
        volumeBindingMode="WaitForFirstConsumer",
    )  # fmt: skip
    claim_of(world, "x", storage_class="made")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)
    references = assumed(evaluate(world.snapshot()))["references"]
    assert "diskformat of PersistentVolumeClaim shop/x" in references
    assert "csi.storage.k8s.io/node-publish-secret-name of PersistentVolumeClaim shop/x" in references
    converted = volume(world, "pv-converted", csi(VSPHERE.name, "fcd-converted"), "converted", storage_class="made")
    converted["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] = VSPHERE.name
    assert "diskformat" in assumed(evaluate(world.snapshot()))["references"]
    volume(world, "pv-made", csi(VSPHERE.name, "fcd-made"), "made", storage_class="made", provisioned_by=VSPHERE.name)
    assert "diskformat" not in assumed(evaluate(world.snapshot()))["references"]
    # A class is recreated to change its parameters.
    storage_class["metadata"]["creationTimestamp"] = world.ago(days=1)
    assert "diskformat" in assumed(evaluate(world.snapshot()))["references"]


def plant_claim(world: World, key: str, provisioner: str, parameters: dict[str, str]) -> None:
    """A Deployment with a claim that waits for its pod, of a class with these parameters."""
    if key != "azure_disk":
        install(world, key, "csi_proxy")
    file_system = {"csi.storage.k8s.io/fstype": "ntfs"}
    world.add(
        "StorageClass", "made", provisioner=provisioner, parameters=parameters | file_system,
        volumeBindingMode="WaitForFirstConsumer",
    )  # fmt: skip
    claim_of(world, "x", storage_class="made")
    workload(world, "Deployment", "x", pod_spec("x"), replicas=1)


@pytest.mark.parametrize(
    ("key", "provisioner", "parameters", "disk_type"),
    [
        ("gce_pd", "pd.csi.storage.gke.io", {"type": "hyperdisk-balanced"}, "hyperdisk-balanced"),
        ("gce_pd", "kubernetes.io/gce-pd", {"type": "pd-ssd"}, "pd-ssd"),
        ("gce_pd", "pd.csi.storage.gke.io", {"type": "Hyperdisk-Balanced"}, "Hyperdisk-Balanced"),
        ("gce_pd", "pd.csi.storage.gke.io", {}, "pd-standard"),
        ("gce_pd", "pd.csi.storage.gke.io", {"type": ""}, "pd-standard"),
        ("gce_pd", "pd.csi.storage.gke.io", {"type": "dynamic"}, ""),
        ("azure_disk", "disk.csi.azure.com", {"skuName": "Premium_LRS"}, "Premium_LRS"),
        ("azure_disk", "disk.csi.azure.com", {"storageAccountType": "UltraSSD_LRS"}, "UltraSSD_LRS"),
        ("azure_disk", "disk.csi.azure.com", {"skuName": "StandardSSD_LRS"}, ""),
        ("aws_ebs", "ebs.csi.aws.com", {"type": "io2"}, "io2"),
        ("aws_ebs", "ebs.csi.aws.com", {"type": "gp3"}, ""),
    ],
)
def test_that_machine_types_attach_the_type_of_a_disk_is_assumed(
    key: str, provisioner: str, parameters: dict[str, str], disk_type: str
) -> None:
    world = healthy()
    plant_claim(world, key, provisioner, parameters)
    report = evaluate(world.snapshot())
    assert report.verdict == "ready"
    message = "The machine types of nodes can attach the disks of StorageClasses: 1 disk type"
    expected = f"{message} ({disk_type} of StorageClass made)" if disk_type else ""
    assert assumed(report).get("machines", "") == expected


@pytest.mark.parametrize(
    ("machine_type", "is_assumed"), [("n2-standard-4", False), ("n4-standard-4", True), ("", True)]
)
def test_a_disk_that_is_attached_shows_what_its_machine_type_attaches(machine_type: str, is_assumed: bool) -> None:
    world = healthy()
    plant_claim(world, "gce_pd", "pd.csi.storage.gke.io", {"type": "pd-ssd"})
    handle = "projects/p/zones/a/disks/y"
    volume(world, "pv-y", csi("pd.csi.storage.gke.io", handle), "y", storage_class="made")
    attach(world, "pv-y", "win-1", "pd.csi.storage.gke.io", handle)
    for name, label in (("win-1", "n2-standard-4"), ("win-2", machine_type)):
        if label:
            world.get("Node", name)["metadata"]["labels"]["node.kubernetes.io/instance-type"] = label
    assert ("machines" in assumed(evaluate(world.snapshot()))) == is_assumed
    world.get("StorageClass", "made")["metadata"]["creationTimestamp"] = world.ago(days=1)
    assert "machines" in assumed(evaluate(world.snapshot()))


def test_the_list_from_which_the_daemon_of_the_operator_starts_services_is_assumed() -> None:
    world = healthy()
    operator(world, "10.18.0-abc")
    report = evaluate(world.snapshot())
    assert (
        "ConfigMap (windows-services-10.18.0-abc of the Windows Machine Config Operator)"
        in assumed(report)["references"]
    )
    assert "windows-services" not in assumed(evaluate(healthy().snapshot()))["references"]


def test_a_workload_that_does_not_start_again_adds_no_assumption() -> None:
    world = SITUATIONS["a_claim_that_is_lost"].world()
    world.get("Deployment", "lost", SHOP)["spec"]["template"]["spec"]["fieldOfTomorrow"] = True
    report = evaluate(world.snapshot())
    assert "fields" not in assumed(report)
    assert render_terminal(report).startswith("NOT READY: ")


def plant_disk(world: World, **spec: Any) -> None:
    volume(world, "pv-x", csi(VSPHERE.name, "fcd-x"), "x")
    workload(world, "Deployment", "x", pod_spec("x", **spec), replicas=1)


@pytest.mark.parametrize(
    ("spec", "dependency"),
    [
        ({"nodeSelector": {"kubernetes.io/hostname": "win-1"}}, "kubernetes.io/hostname of Deployment shop/x"),
        ({"nodeSelector": {BUILD_LABEL: "10.0.20348"}}, f"{BUILD_LABEL} of Deployment shop/x"),
        ({"nodeName": "win-1"}, "nodeName of Deployment shop/x"),
        ({"nodeSelector": {IMAGE_LABEL: "ami-1"}}, f"{IMAGE_LABEL} of Deployment shop/x"),
    ],
)
def test_an_upgrade_that_may_replace_nodes_assumes_what_workloads_have_of_them(
    spec: dict[str, Any], dependency: str
) -> None:
    world = healthy().copy()
    world.get("Node", "win-1")["metadata"]["labels"][IMAGE_LABEL] = "ami-1"
    plant_disk(world, **spec)
    assert "nodes" not in assumed(evaluate(world.snapshot()))
    planned = evaluate(world.snapshot(), Target(kubernetes="1.37"))
    assert f"1 node reference ({dependency})" in assumed(planned)["nodes"]


def test_an_upgrade_that_may_replace_nodes_assumes_local_disks() -> None:
    world = healthy().copy()
    volume(world, "pv-local", {"local": {"path": "D:\\data"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["win-1"]}]}]}}}, "local")  # fmt: skip
    workload(world, "Deployment", "local", pod_spec("local"), replicas=1)
    planned = evaluate(world.snapshot(), Target(kubernetes="1.37"))
    assert "1 node reference (local disk of PersistentVolume pv-local)" in assumed(planned)["nodes"]


@pytest.mark.parametrize("field", ["dataSource", "dataSourceRef"])
def test_a_restored_disk_is_assumed_to_meet_no_disk_of_its_source(field: str) -> None:
    world = healthy().copy()
    plant_disk(world)
    assert "disks" not in assumed(evaluate(world.snapshot()))
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "monday"}
    world.get("PersistentVolumeClaim", "x", SHOP)["spec"][field] = source
    assert "1 restored disk (PersistentVolume pv-x)" in assumed(evaluate(world.snapshot()))["disks"]
