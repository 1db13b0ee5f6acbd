# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: windows_nodes
short_description: Windows hosts of a cluster
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Lists the Windows Nodes of a cluster as hosts.
  - A host has the name of its Node, also in its variable C(kubewin_node_name), which the playbooks verify on the host.
  - C(ansible_host) is the address in the ConfigMap C(windows-instances) of the Windows Machine Config Operator (WMCO), else the Node's
    C(InternalIP), IPv4 before IPv6. For another one, set it with O(compose). The plugin ignores link-local addresses, and values that are
    neither an IP address nor a host name.
  - Hosts with an address are in the group C(kubewin_windows), a child of C(windows), on which the playbooks work. A Node without an
    address is in the group C(kubewin_unreachable), with the reason in C(kubewin_unreachable_because).
  - Sets no users and passwords. Keep them in other variables of the inventory, or in AWX's Machine credential.
  - The file name must end in C(windows_nodes.yml) or C(windows_nodes.yaml).
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
    choices: [kubewin.csi.windows_nodes]
  connection:
    description:
      - Value of C(ansible_connection). V(ssh) also sets C(ansible_shell_type=cmd).
      - V(auto) is V(ssh) on OpenShift, which WMCO requires, and V(winrm) elsewhere.
      - V(none) sets nothing, so group variables apply.
    type: str
    choices: [auto, winrm, psrp, ssh, none]
    default: auto
  annotations:
    description:
      - Annotations of Nodes for C(kubewin_node.annotations), in addition to WMCO's versions.
      - Others are not in the inventory or its cache, because they can hold anything.
    type: list
    elements: str
    default: []
notes:
  - Further groups are C(kubewin_platform_NAME) (C(openshift), C(aks), C(eks), C(gke), C(rke2), C(other)), C(kubewin_owner_NAME)
    (the program that prepares the node and its csi-proxy, C(wmco), C(wmco_byoh), C(node_image), C(rancher_wins) or C(unmanaged)),
    C(kubewin_build_NUMBER) and C(kubewin_driver_NAME).
  - C(kubewin_driver_NAME) holds the hosts whose CSINode names the driver, under this collection's name for it where it has one.
    The entry does not prove that the driver works. See O(kubewin.csi.driver_info#module:driver) for the names.
  - Further variables are C(kubewin_cluster), C(kubewin_read_at), C(kubewin_platform), C(kubewin_owner), C(kubewin_build),
    C(kubewin_registered_drivers), C(kubewin_node) (a dictionary of C(ready), C(unschedulable),
    C(kubelet_version), C(os_image), C(labels), C(annotations) and C(addresses)), and for WMCO's instances C(kubewin_instance) and
    C(kubewin_instance_user).
  - Access needs no option with C(K8S_AUTH_*), C(KUBECONFIG), in a pod of the cluster, or with AWX's credential
    "OpenShift or Kubernetes API Bearer Token". The required rules are in C(roles/csi_driver/files/kubewin-rbac.yaml).
  - A cache is valid for one file, kubeconfig, environment and set of options. It holds no secret.
  - Ansible continues with an empty inventory if a source fails, unless C(ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED) is set.
  - Several clusters in one inventory are refused if they have a Node of the same name. The playbooks work on one cluster.
seealso:
  - module: kubewin.csi.node_info
"""

EXAMPLES = r"""
# This line is enough: everything below has a default. Access comes from KUBECONFIG, K8S_AUTH_* or AWX's credential.
plugin: kubewin.csi.windows_nodes

connection: ssh
annotations: [example.com/management-address]

# Hosts for which an expression fails do not change, unless strict is true.
compose:
  ansible_host: kubewin_node.annotations['example.com/management-address']
  ansible_port: "2222"
  # The users of WMCO's instances.
  ansible_user: kubewin_instance_user

# A group for each zone, and one of the hosts that can be changed now.
keyed_groups:
  - prefix: zone
    key: kubewin_node.labels['topology.kubernetes.io/zone'] | default('none')
groups:
  free_to_change: kubewin_node.ready and not kubewin_node.unschedulable

# Kept for ten minutes.
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/kubewin-inventory
cache_timeout: 600
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client

from ..plugin_utils.actions.foreign import mark_foreign
from ..plugin_utils.catalog.wmco import OPERATOR_NAMESPACE
from ..plugin_utils.inventory import listing
from ..plugin_utils.inventory.listing import InventoryHost
from ..plugin_utils.inventory.observation import INSTANCE, Observation
from ..plugin_utils.kube import kinds
from ..plugin_utils.kube.client import Client
from ..plugin_utils.kube.connect import CLUSTER_ARG_SPEC, create_client, require_packages
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.kube.identity import derive_cache_key

_ACCESS = sorted(set(CLUSTER_ARG_SPEC) - {"api_timeout"})


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Reads options and the cluster or the cache, and adds the hosts that plugin_utils/inventory derives from it."""

    NAME = "kubewin.csi.windows_nodes"

    def verify_file(self, path: str) -> bool:
        """By its name, as Ansible asks every plugin about every file."""
        return path.endswith(("windows_nodes.yml", "windows_nodes.yaml")) and bool(
            BaseInventoryPlugin.verify_file(self, path)
        )

    def parse(self, inventory: Any, loader: Any, path: str, cache: bool = True) -> None:
        """Fill the inventory. AnsibleParserError says what was found, expected and what to do."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        observed = self._read_observation(path, cache)
        inventory.add_child(inventory.add_group(listing.WINDOWS_GROUP), inventory.add_group(listing.HOSTS))
        for host in listing.list_hosts(observed, self.get_option("connection")):
            self._add(inventory, host, observed.server)

    def _read_observation(self, path: str, cache: bool) -> Observation:
        """From the cache when it may be used and has it, else from the cluster, and then into the cache."""
        access = {name: self.get_option(name) for name in _ACCESS if self.get_option(name) is not None}
        key = None
        if self.get_option("cache"):
            key = f"{self.get_cache_key(path)}_{derive_cache_key(access, self.get_option('annotations'))}"
        if key is not None and cache:
            try:
                return Observation.from_dict(self._cache[key])
            except (KeyError, TypeError, ValueError):
                # Not there, too old, or written by another release.
                pass
        observed = self._observe(access)
        if key is not None:
            self._cache[key] = observed.as_dict()
        return observed

    def _observe(self, access: Mapping[str, Any]) -> Observation:
        kubeconfig = access.get("kubeconfig")
        named = f" by kubeconfig {kubeconfig}" if isinstance(kubeconfig, str) else ""
        try:
            require_packages()
            client = create_client(partial(get_api_client, **access), float(self.get_option("api_timeout")), named)
            return observe(client, self.get_option("annotations"))
        except ClusterError as error:
            raise AnsibleParserError(str(error)) from error

    def _add(self, inventory: Any, host: InventoryHost, server: str) -> None:
        known_host = inventory.get_host(host.name)
        known_variables = known_host.get_vars() if known_host is not None else {}
        if known_variables.get("kubewin_cluster", server) != server:
            raise AnsibleParserError(
                f"{host.name} is a Node of {known_variables['kubewin_cluster']} and of {server}, expected one cluster. List "
                "one cluster per inventory"
            )
        inventory.add_host(host.name)
        strict = self.get_option("strict")
        facts = mark_foreign(host.variables)
        placed = host.merge_composed(self._evaluate_compose({**known_variables, **facts}, host.name, strict))
        for name, value in mark_foreign(placed.variables).items():
            inventory.set_variable(host.name, name, value)
        for group in (*placed.groups, placed.group):
            inventory.add_child(inventory.add_group(self._sanitize_group_name(group)), host.name)
        variables = inventory.get_host(host.name).get_vars()
        self._add_host_to_composed_groups(self.get_option("groups"), variables, host.name, strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, host.name, strict)

    def _evaluate_compose(self, variables: Mapping[str, Any], host: str, strict: bool) -> dict[str, Any]:
        """What the option compose makes, before any of it is a variable: an inventory has no way to take one back."""
        composed = {}
        for name, expression in self.get_option("compose").items():
            try:
                composed[name] = self._compose(expression, variables)
            except Exception as error:
                if strict:
                    raise AnsibleParserError(
                        f"compose cannot set {name} for {host}: {error}. Correct the expression, or set strict to "
                        "false to skip such variables"
                    ) from error
        return composed


def observe(client: Client, annotations: Iterable[str]) -> Observation:
    """Read Windows Nodes, CSINodes and the ConfigMap of instances: four requests, more only where a list has several pages.

    Raises ClusterError, whose text names the rule that is missing: half an inventory is called none.
    """
    return Observation.from_objects(
        kubernetes=client.read_version(),
        nodes=client.list_windows_nodes(),
        csi_nodes=client.list(kinds.CSI_NODE).items,
        server=client.server,
        read_at=client.now().isoformat(timespec="seconds"),
        instances=client.get(kinds.CONFIG_MAP, INSTANCE, OPERATOR_NAMESPACE),
        annotations=annotations,
    )
