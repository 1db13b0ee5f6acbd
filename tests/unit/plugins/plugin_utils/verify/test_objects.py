# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects of a proof: labelled, harmless, and valid whatever a node is called. The commands: what cmd understands."""

from __future__ import annotations

from datetime import datetime, timezone

from ansible_collections.kubewin.csi.plugins.plugin_utils.verify import objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import RunScope
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import VerifyRequest
from unit.plugins.plugin_utils.verify.clusters import node, target

SCOPE = RunScope("1a2b3c4d", "kubewin-verify-1a2b3c4d", owns_namespace=True)
REQUEST = VerifyRequest((), image="image:1")
NOW = datetime(2026, 11, 21, 8, 0, 0, tzinfo=timezone.utc)


def test_everything_carries_the_labels_by_which_it_is_found_again() -> None:
    made = [
        SCOPE.define_namespace(),
        SCOPE.define_claim(target()),
        SCOPE.define_pod(target(), 1, node("win-1"), REQUEST, 600),
    ]
    for one in made:
        labels = one["metadata"]["labels"]
        for pair in objects.select_run("1a2b3c4d").split(","):
            key, _equals, value = pair.partition("=")
            assert labels[key] == value


def test_a_pod_goes_to_its_node_alone_and_through_the_scheduler() -> None:
    spec = SCOPE.define_pod(target(), 1, node("win-2"), REQUEST, 600)["spec"]
    (term,) = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win-2"]}]}
    assert "nodeName" not in spec
    assert spec["automountServiceAccountToken"] is False


def test_a_pod_of_a_killed_run_ends_by_itself() -> None:
    assert SCOPE.define_pod(target(), 1, node("win-2"), REQUEST, 600)["spec"]["activeDeadlineSeconds"] == 600


def test_names_are_short_and_differ_by_node_driver_and_run() -> None:
    long = "ip-10-0-0-1.a-very-long-region-name.compute.internal.example.com-and-more"
    runs = [RunScope(run, "shared", owns_namespace=False) for run in ("1a2b3c4d", "2b3c4d5e")]
    targets = [target(driver, name) for driver in ("aws_ebs", "gce_pd") for name in (long, f"{long}2")]
    names = {run.name(at) for run in runs for at in targets}
    assert len(names) == 8
    assert all(len(name) < 40 and "_" not in name and "." not in name for name in names)


def test_the_file_is_written_by_cmd_without_anything_it_would_read_as_its_own() -> None:
    text = objects.format_content(target("azure_disk", "win-1.example.com"), "00ff00ff", NOW)
    assert text == "2026-11-21T08:00:00Z 00ff00ff azure_disk win-1.example.com"
    assert not set(text) & set("<>|&^%!\"'()")
    # No word holds a space: nothing on the way to cmd has a reason to quote.
    assert objects.render_write(text) == ["cmd", "/c", ">C:\\kubewin\\proof.txt", "echo", *text.split(" ")]
    assert objects.render_read() == ["cmd", "/c", "type", "C:\\kubewin\\proof.txt"]
