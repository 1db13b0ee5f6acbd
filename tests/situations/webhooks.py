# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Webhooks without their Service that have to accept what is created when a pod moves."""

from __future__ import annotations

from situations.base import VSPHERE, situation
from situations.cluster import SHOP, claim_of, pod_spec, workload
from situations.world import World

WEB = "Deployment shop/web"

# It asks the webhook for the pods of the situation, too.
_NO_WEBHOOK = "a real API server creates no pod with this webhook"


def add_webhook(world: World, namespace: str = SHOP, resource: str = "pods", group: str = "", **fields: object) -> None:
    """A webhook of new pods in a namespace, or of another resource, whose Service does not exist."""
    rule = {
        "operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "scope": "*"
    }  # fmt: skip
    webhook = {
        "name": "pods.policy.example.com",
        "clientConfig": {"service": {"namespace": "policy", "name": "gone"}},
        "failurePolicy": "Fail",
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        **fields,
    }
    world.add("ValidatingWebhookConfiguration", "policy", webhooks=[webhook])


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service(world: World) -> None:
    add_webhook(world)


@situation("CSI-W20", starts_again={WEB: "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_labelled_namespaces(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"].setdefault("labels", {})["policy.example.com/check"] = "true"
    add_webhook(world, namespaceSelector={"matchLabels": {"policy.example.com/check": "true"}})


@situation("CSI-W20", starts_again={WEB: "no", "StatefulSet shop/db": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_bindings(world: World) -> None:
    add_webhook(world, resource="pods/binding")


@situation("CSI-W20", starts_again={WEB: "yes", "StatefulSet shop/db": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_attachments(world: World) -> None:
    add_webhook(world, resource="volumeattachments", group="storage.k8s.io")


def _add_claim_without_volume(world: World) -> None:
    claim_of(world, "new", storage_class="vsphere-csi-windows")
    workload(world, "Deployment", "new", pod_spec("new"), replicas=0)


@situation("CSI-W20", starts_again={WEB: "yes", "Deployment shop/new": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_volumes(world: World) -> None:
    _add_claim_without_volume(world)
    add_webhook(world, resource="persistentvolumes")


@situation(starts_again={"Deployment shop/new": "yes"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_volumes_with_namespaces(world: World) -> None:
    _add_claim_without_volume(world)
    add_webhook(world, resource="persistentvolumes")
    world.get("ValidatingWebhookConfiguration", "policy")["webhooks"][0]["rules"][0]["scope"] = "Namespaced"


@situation("CSI-W20", starts_again={WEB: "yes", "StatefulSet shop/new": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_claims(world: World) -> None:
    template = {"metadata": {"name": "data"}, "spec": world.get("PersistentVolumeClaim", "share", SHOP)["spec"].copy()}
    template["spec"].pop("volumeName")
    workload(world, "StatefulSet", "new", pod_spec(), replicas=0, volumeClaimTemplates=[template])
    add_webhook(world, resource="persistentvolumeclaims")


@situation("CSI-W21", starts_again={WEB: "yes", "StatefulSet shop/new": "unknown"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_labelled_claims(world: World) -> None:
    """Labels of claims that do not exist yet are not read."""
    a_webhook_without_its_service_for_claims(world)
    selector = {"matchLabels": {"backup": "true"}}
    world.get("ValidatingWebhookConfiguration", "policy")["webhooks"][0]["objectSelector"] = selector


@situation("CSI-W20", starts_again={WEB: "yes", "CronJob shop/nightly": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_jobs(world: World) -> None:
    workload(world, "CronJob", "nightly", pod_spec("share"))
    add_webhook(world, resource="jobs", group="batch")


@situation("CSI-W20", starts_again={WEB: "yes", "StatefulSet shop/db": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_that_node_plugins_need(world: World) -> None:
    add_webhook(world, VSPHERE.namespace)


_CONDITION = {"name": "windows", "expression": "object.spec.os.name == 'windows'"}


@situation("CSI-W21", starts_again={WEB: "yes", "StatefulSet shop/db": "unknown"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_and_with_conditions_that_node_plugins_need(world: World) -> None:
    add_webhook(world, VSPHERE.namespace, matchConditions=[_CONDITION])


@situation("CSI-W21", starts_again={WEB: "unknown"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_and_with_conditions(world: World) -> None:
    add_webhook(world, matchConditions=[_CONDITION])


@situation("CSI-W20", starts_again={WEB: "yes", "StatefulSet shop/db": "no"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_other_pods(world: World) -> None:
    labels = world.get("StatefulSet", "db", SHOP)["spec"]["template"]["metadata"]["labels"]
    add_webhook(world, objectSelector={"matchLabels": dict(labels)})


@situation(starts_again={WEB: "yes", "StatefulSet shop/db": "yes"}, only_here=_NO_WEBHOOK)
def webhooks_that_new_pods_do_not_need(world: World) -> None:
    add_webhook(world, failurePolicy="Ignore")
    add_webhook(
        world, rules=[{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"]}]
    )
    world.add("Service", "there", "policy")
    add_webhook(world, clientConfig={"service": {"namespace": "policy", "name": "there"}})
