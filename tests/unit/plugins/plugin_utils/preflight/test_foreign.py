# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Node plugins of others are recognised by what registers them, and evaluated by what can be seen of them."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from situations.cluster import healthy
from situations.foreign import CASES, OTHER, SECRETS, UPSTREAM, Case, Plugin, deploy


@pytest.mark.parametrize("planted", CASES, ids=[one.name for one in CASES])
def test_it_is_evaluated_by_its_registration_and_its_pods(planted: Case) -> None:
    world = healthy()
    planted.plant(world)
    report = evaluate(world.snapshot())
    reported = "\n".join(f"{one.id} {one.severity} {one.object}: {one.message}" for one in report.findings)
    assert {one.id for one in report.findings} == planted.expected, reported
    answers = {one.workload: one.starts_again for one in report.workloads}
    assert answers["Deployment shop/theirs"] == planted.starts_again, reported
    if planted.starts_again == "yes":
        assert report.verdict == "ready", reported
        assert not report.findings, reported


def test_what_a_driver_that_is_unknown_supports_is_an_assumption() -> None:
    world = healthy()
    before = {one.kind for one in evaluate(world.snapshot()).assumptions}
    CASES[0].plant(world)
    (added,) = [one for one in evaluate(world.snapshot()).assumptions if one.kind not in before]
    assert (added.kind, added.workloads) == ("drivers", ("Deployment shop/theirs",))
    assert f"1 unknown driver ({SECRETS.driver})" in added.message


@pytest.mark.parametrize("plugin", UPSTREAM, ids=[one.driver for one in UPSTREAM])
def test_upstreams_own_plugins_are_recognised(plugin: Plugin) -> None:
    world = healthy()
    deploy(world, plugin)
    observed = ObservedDaemonSet.from_object(world.get("DaemonSet", plugin.daemon_set, plugin.namespace))
    assert observed.is_plugin
    assert observed.is_node_plugin_of(plugin.driver)
    others = {one.name for one in DRIVERS.values()} - {plugin.driver}
    assert not [name for name in (*others, OTHER.driver, plugin.driver[:-1]) if observed.is_node_plugin_of(name)]


def test_a_plugin_of_linux_is_none_of_windows() -> None:
    world = healthy()
    deploy(world, SECRETS)
    found = world.get("DaemonSet", SECRETS.daemon_set, SECRETS.namespace)
    pod = found["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"kubernetes.io/os": "linux"}
    pod["volumes"] = []
    args = ["--kubelet-registration-path=/var/lib/kubelet/plugins/csi-secrets-store/csi.sock"]
    pod["containers"] = [{"name": "node-driver-registrar", "args": args}]
    assert not ObservedDaemonSet.from_object(found).is_plugin
