# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our translation of in-tree volumes and classes against Kubernetes' own library, on random objects, field by field."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.native import convert_volume
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.translation import (
    REGIONS,
    ZONES,
    TranslationError,
    find_file_system,
    find_plugin,
    translate_volume,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import Source
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import ObservedVolume
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.migration import explain_untranslatable
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from lab import builds

# Those that a driver of this collection takes over.
TAKEN_OVER = [plugin for plugin in in_tree.PLUGINS if plugin.on_windows]
DAILY, MANY = 300, 10_000


class Library:
    """csi-translation-lib in one process: a line of JSON for each question."""

    def __init__(self) -> None:
        program = builds.build("translation")["translation"]
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0

    def ask(self, **question: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        output: dict[str, Any] = json.loads(self.process.stdout.readline())
        return output

    def agrees(self, ours: Callable[[], dict[str, Any]], **question: Any) -> dict[str, Any] | None:
        """Compare; what both made, or None where both refuse."""
        try:
            made: dict[str, Any] | None = ours()
        except TranslationError:
            made = None
        output = self.ask(**question, ours=made)
        if made is None or "error" in output:
            assert ("error" in output) == (made is None), (output, made)
            return None
        # Both went through the same types of the API.
        found: dict[str, Any] = _filled(output["made"])
        assert _filled(output["ours"]) == found
        return found


def _filled(value: Any) -> Any:
    """Without empty fields, which are absent ones to the API; an entry of a list stays."""
    if isinstance(value, list):
        return [_filled(one) for one in value]
    if isinstance(value, dict):
        found = {key: _filled(one) for key, one in value.items()}
        return {key: one for key, one in found.items() if one not in (None, [], {})}
    return value


@pytest.fixture(scope="module")
def library() -> Iterator[Library]:
    started = Library()
    yield started
    started.close()


# Random objects


def optional(**fields: some.SearchStrategy[Any]) -> some.SearchStrategy[dict[str, Any]]:
    return some.fixed_dictionaries({}, optional=fields)


def text(*known: str) -> some.SearchStrategy[str]:
    return some.sampled_from([*known, "", "a", "B-1", "x.y/z"])


ZONE = some.sampled_from(
    ["", "a", "0", "1", "12", "us-east-1a", "europe-west1-b", "europe-west1-c", "us-west1-a", "eastus-1", " b "]
)
ZONE_LABEL = some.one_of(ZONE, some.lists(ZONE, min_size=2, max_size=3).map("__".join))
OWN_KEYS = ("topology.ebs.csi.aws.com/zone", "topology.gke.io/zone", "topology.csi.vmware.com/zone")
KEY = some.sampled_from([*ZONES, *REGIONS, *OWN_KEYS, "tier"])
EXPRESSION = some.fixed_dictionaries(
    {"key": KEY, "operator": some.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"])},
    optional={"values": some.lists(ZONE, max_size=3)},
)
TERM = optional(matchExpressions=some.lists(EXPRESSION, max_size=3), matchFields=some.lists(EXPRESSION, max_size=1))
AFFINITY = optional(required=optional(nodeSelectorTerms=some.lists(TERM, max_size=3)))
LABELS = optional(**dict.fromkeys((*ZONES, *REGIONS), ZONE_LABEL), tier=text("gold"))
MODES = some.lists(
    some.sampled_from(["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]), max_size=3, unique=True
)
FILE_SYSTEM = text("ext4", "ntfs", "NTFS", "xfs")
FLAG = some.booleans()
EBS = some.one_of(
    text("vol-0a", "aws://us-east-1a/vol-0a", "aws:///vol-0a", "aws://vol-0a", "snap-1", "aws:/vol-1", "AWS://z/vol-1"),
    some.text("vol-/0a%4?#_", max_size=12).map("aws://us-east-1a/".__add__),
    some.text("vol-/0aé ", max_size=12).map("aws:///vol-".__add__),
)
SECRET = text("azure-storage-account-acc-secret", "xazure-storage-account-a-secrety", "azure-storage-account--secret")
DISK = text("/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d", "https://x/vhds/y.vhd")
SOURCES: dict[str, some.SearchStrategy[dict[str, Any]]] = {
    "awsElasticBlockStore": optional(
        volumeID=EBS, fsType=FILE_SYSTEM, partition=some.integers(0, 9), readOnly=FLAG
    ),
    "azureDisk": optional(
        diskName=text("d"), diskURI=DISK, cachingMode=text("None", "ReadWrite"), fsType=FILE_SYSTEM, readOnly=FLAG,
        kind=text("Managed", "managed", "Shared", "Dedicated"),
    ),
    "azureFile": optional(
        secretName=SECRET, shareName=text("share"), readOnly=FLAG, secretNamespace=text("kube-system")
    ),
    "gcePersistentDisk": optional(
        pdName=text("disk"), fsType=FILE_SYSTEM, partition=some.integers(0, 9), readOnly=FLAG
    ),
    "cinder": optional(
        volumeID=text("id"), fsType=FILE_SYSTEM, readOnly=FLAG, secretRef=optional(name=text("s"), namespace=text("n"))
    ),
    "vsphereVolume": optional(
        volumePath=text("[ds] kubevols/a.vmdk"), fsType=FILE_SYSTEM, storagePolicyName=text("gold"), storagePolicyID=text("i")
    ),
    "portworxVolume": optional(volumeID=text("id"), fsType=FILE_SYSTEM, readOnly=FLAG),
}  # fmt: skip
ANNOTATIONS = optional(
    **{
        "kubernetes.io/azure-file-resource-group": text("rg"),
        "pv.kubernetes.io/provisioned-by": text("kubernetes.io/aws-ebs"),
    }
)


@some.composite
def volumes(draw: some.DrawFn) -> dict[str, Any]:
    fields = [plugin.field for plugin in TAKEN_OVER]
    kind = draw(some.sampled_from([*fields, *fields, "rbd", "nfs", "csi"]))
    spec = draw(
        optional(
            capacity=some.just({"storage": "1Gi"}), accessModes=MODES, claimRef=optional(namespace=text("shop"), name=text("data")),
            nodeAffinity=AFFINITY, volumeMode=some.sampled_from(["Filesystem", "Block"]), storageClassName=text("gold"),
            mountOptions=some.lists(text("ro"), max_size=2), persistentVolumeReclaimPolicy=text("Retain"),
        )
    )  # fmt: skip
    spec[kind] = draw(SOURCES[kind]) if kind in SOURCES else {"driver": "x"} if kind == "csi" else {}
    metadata = draw(optional(labels=LABELS, annotations=ANNOTATIONS))
    return {"metadata": {"name": draw(text("pv-1")), **metadata}, "spec": spec}


@some.composite
def inlines(draw: some.DrawFn) -> dict[str, Any]:
    kind = draw(some.sampled_from([*SOURCES, "rbd", "emptyDir"]))
    source = draw(SOURCES[kind]) if kind in SOURCES else {}
    if kind in ("azureFile", "cinder"):
        # Those of pods name no namespace.
        source.pop("secretNamespace", None)
        source.get("secretRef", {}).pop("namespace", None)
    return {"name": draw(text("data")), kind: source}


# The library goes through parameters in random order: of two that mean the same it takes any.
PARAMETERS = (
    "fstype", "fsType", "zone", "zones", "Zone", "iopsPerGB", "iopspergb", "type", "storagepolicyname", "storagePolicyName",
    "datastore", "diskformat", "hostfailurestotolerate", "forceProvisioning", "cacheReservation", "diskStripes",
    "objectSpaceReservation", "iopsLimit", "skuName", "kind", "csi.storage.k8s.io/fstype", "availability", "replication-type",
    "openstorage.io/auth-secret-name", "openstorage.io/auth-secret-namespace", "allowautoiopspergbincrease",
)  # fmt: skip


def _meaning(name: str) -> str:
    word = name.lower()
    return {"zones": "zone", "csi.storage.k8s.io/fstype": "fstype", "allowautoiopspergbincrease": "iopspergb"}.get(
        word, word
    )


@some.composite
def classes(draw: some.DrawFn) -> dict[str, Any]:
    names = draw(some.lists(some.sampled_from(PARAMETERS), max_size=5, unique_by=_meaning))
    value = some.one_of(text("ext4", "ntfs"), some.lists(ZONE, max_size=3).map(",".join))
    requirement = some.fixed_dictionaries({"key": KEY, "values": some.lists(ZONE, max_size=3)})
    terms = some.lists(optional(matchLabelExpressions=some.lists(requirement, max_size=3)), max_size=3)
    made = draw(
        optional(
            allowedTopologies=terms,
            volumeBindingMode=text("Immediate"),
            mountOptions=some.lists(text("ro"), max_size=1),
        )
    )
    plugin = draw(some.sampled_from(in_tree.PLUGINS))
    parameters = {name: draw(value) for name in names}
    return {"metadata": {"name": "gold"}, "provisioner": plugin.plugin, **made, "parameters": parameters}


def compared(count: int, test: Callable[..., None], **strategies: some.SearchStrategy[Any]) -> None:
    """Run a comparison on that many random objects; a disagreement is shrunk and printed."""
    run = settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=count == DAILY,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )(given(**strategies)(test))
    run()


COUNTS = pytest.mark.parametrize("count", [DAILY, pytest.param(MANY, marks=pytest.mark.torture)])


@COUNTS
def test_volumes(library: Library, count: int) -> None:
    translated: dict[str, int] = {}

    def same(volume: dict[str, Any]) -> None:
        made = library.agrees(lambda: translate_volume(volume), volume=volume)
        if made is not None:
            driver = made["spec"]["csi"]["driver"]
            translated[driver] = translated.get(driver, 0) + 1

    compared(count, same, volume=volumes())
    assert set(translated) == {known.driver for known in TAKEN_OVER}


@COUNTS
def test_native_volumes_differ_by_name_only(library: Library, count: int) -> None:
    """A native volume is the library's, but for: ntfs on block volumes, and the disk's real name on Google and vSphere."""

    def same(volume: dict[str, Any]) -> None:
        try:
            found = convert_volume(volume, "given" if "gcePersistentDisk" in volume["spec"] else "")
        except TranslationError:
            return
        output = library.ask(volume=volume, ours={**volume, "spec": dict(found.spec)})
        assert "error" not in output, output
        made, ours = _filled(output["made"])["spec"], _filled(output["ours"])["spec"]
        csi = made["csi"]
        assert found.migrated == csi["volumeHandle"]
        _windows(csi)
        assert ours == made
        assert found.source("h") == {**csi, "volumeHandle": "h"}
        assert found.handle == _named(found.plugin.field, csi["volumeHandle"])

    compared(count, same, volume=volumes())


def _windows(csi: dict[str, Any]) -> None:
    if csi["driver"] != "file.csi.azure.com":
        csi["fsType"] = "ntfs"
        if "fstype" in csi.get("volumeAttributes", {}):
            csi["volumeAttributes"]["fstype"] = "ntfs"


def _named(field: str, migrated: str) -> str:
    if field == "vsphereVolume":
        return ""
    if field == "gcePersistentDisk":
        # Migration guesses the project and the zone by the node.
        return "given"
    return migrated


@COUNTS
def test_readiness_refuses_what_migration_refuses(library: Library, count: int) -> None:
    """Readiness keeps a few facts of a volume, and its evaluation of them is the translation's."""

    def same(volume: dict[str, Any]) -> None:
        plugin, observed = find_plugin(volume), ObservedVolume.from_object(volume)
        if plugin is None:
            return
        source = volume["spec"][plugin.field]
        if source.get("secretNamespace") == "" or source.get("kind") == "":
            # The API refuses these.
            return
        assert observed.source.field == plugin.field
        assert (explain_untranslatable(observed.source, observed) is not None) == _refused(
            lambda: translate_volume(volume)
        )

    def same_inline(volume: dict[str, Any]) -> None:
        source = Source.from_spec(volume)
        known = in_tree.find_by_field(source.field)
        if known is not None and volume[known.field].get("kind") != "":
            refused = "error" in library.ask(inline=volume, namespace="shop")
            assert (explain_untranslatable(source, None) is not None) == refused

    def same_class(storage_class: dict[str, Any]) -> None:
        plugin = in_tree.find_by_name(storage_class["provisioner"])
        assert plugin is not None
        output = library.ask(**{"class": storage_class, "plugin": plugin.plugin})
        if "error" not in output:
            made = output["made"].get("parameters") or {}
            wanted = made.get("csi.storage.k8s.io/fstype") or next(
                (made[key] for key in made if key.lower() == "fstype"), ""
            )
            assert find_file_system(plugin, storage_class["parameters"]) == wanted

    compared(count, same, volume=volumes())
    compared(count, same_inline, volume=inlines())
    compared(count, same_class, storage_class=classes())


def _refused(translation: Callable[[], Any]) -> bool:
    try:
        translation()
    except TranslationError:
        return True
    return False


@pytest.mark.parametrize(
    ("what", "question"),
    [
        ("read-only", {"volume": {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}}}),
        (
            "ReadWriteMany on Google",
            {"volume": {"gcePersistentDisk": {"pdName": "d"}, "accessModes": ["ReadWriteMany"]}},
        ),
    ],
)
def test_a_difference_is_found(library: Library, what: str, question: Mapping[str, Any]) -> None:
    """The comparison itself detects the two that once were lost."""
    volume = {"metadata": {"name": "pv"}, "spec": question["volume"]}

    def lossy() -> dict[str, Any]:
        made = translate_volume(volume)
        csi = {key: value for key, value in made["spec"]["csi"].items() if key != "readOnly"}
        return {**made, "spec": {**made["spec"], "csi": csi, "accessModes": question["volume"].get("accessModes")}}

    with pytest.raises(AssertionError):
        library.agrees(lossy, volume=volume)
    assert library.agrees(lambda: translate_volume(volume), volume=volume), what
