# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Webhooks without their Service that have to accept what is created when a pod moves."""

from __future__ import annotations

from situations.base import VSPHERE, situation
from situations.cluster import SHOP, pod_spec, workload
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


_UNKNOWN = {WEB: "unknown", "StatefulSet shop/db": "unknown"}


@situation("CSI-W21", starts_again=_UNKNOWN, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service(world: World) -> None:
    add_webhook(world)


@situation("CSI-W21", starts_again=_UNKNOWN, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_labelled_namespaces(world: World) -> None:
    world.get("Namespace", SHOP)["metadata"].setdefault("labels", {})["policy.example.com/check"] = "true"
    add_webhook(world, namespaceSelector={"matchLabels": {"policy.example.com/check": "true"}})


@situation(starts_again={WEB: "yes", "StatefulSet shop/db": "yes"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_other_namespaces(world: World) -> None:
    add_webhook(world, namespaceSelector={"matchLabels": {"policy.example.com/check": "true"}})


@situation("CSI-W21", starts_again=_UNKNOWN, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_bindings(world: World) -> None:
    add_webhook(world, resource="pods/binding")


@situation("CSI-W21", starts_again=_UNKNOWN, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_attachments(world: World) -> None:
    """What is in no namespace is not selected by one."""
    add_webhook(world, "elsewhere", resource="volumeattachments", group="storage.k8s.io")


@situation("CSI-W21", starts_again={WEB: "unknown", "CronJob shop/nightly": "unknown"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_for_jobs(world: World) -> None:
    workload(world, "CronJob", "nightly", pod_spec("share"))
    add_webhook(world, resource="jobs", group="batch")


@situation("CSI-W21", starts_again={WEB: "yes", "StatefulSet shop/db": "unknown"}, only_here=_NO_WEBHOOK)
def a_webhook_without_its_service_that_node_plugins_need(world: World) -> None:
    add_webhook(world, VSPHERE.namespace)


@situation(starts_again={WEB: "yes", "StatefulSet shop/db": "yes"}, only_here=_NO_WEBHOOK)
def webhooks_that_new_pods_do_not_need(world: World) -> None:
    add_webhook(world, failurePolicy="Ignore")
    add_webhook(
        world, rules=[{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/exec"]}]
    )
    world.add("Service", "there", "policy")
    add_webhook(world, clientConfig={"service": {"namespace": "policy", "name": "there"}})
