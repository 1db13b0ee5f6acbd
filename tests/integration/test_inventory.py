# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of a real cluster, as ansible-inventory and plays see it, with access given by environment alone."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.inventory.windows_nodes import EXAMPLES
from integration.playbooks import ROOT, lane, lines, play
from lab.cluster import nodes
from lab.handle import Lab

OPERATOR = "openshift-windows-machine-config-operator"
NAMESPACES = "/api/v1/namespaces"
INSTANCES = f"{NAMESPACES}/{OPERATOR}/configmaps"
PLAIN = "plugin: kubewin.csi.windows_nodes\n"


@dataclass(frozen=True)
class Shown:
    """What ansible-inventory printed."""

    code: int
    text: str
    output: str

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        """Variables by host, of --list."""
        found: dict[str, dict[str, Any]] = json.loads(self.text)["_meta"]["hostvars"]
        return found

    def members(self, group: str) -> list[str]:
        """Hosts of a group, of --list."""
        return sorted(json.loads(self.text).get(group, {}).get("hosts", []))


@pytest.fixture(scope="module")
def cluster(lab: Lab) -> Iterator[Lab]:
    """The lab with two more Windows Nodes behind which nothing is: one without an address, one that wants to run code here."""
    lost = nodes.body(nodes.Node("win-lost", "169.254.7.7", windows=True), 10250)
    loud = nodes.body(nodes.Node("win-loud", "127.0.12.99", windows=True), 10250)
    loud["metadata"]["annotations"] = {"example.com/note": "{{ lookup('ansible.builtin.pipe', 'id') }}"}
    loud["metadata"]["labels"]["topology.kubernetes.io/zone"] = "zone-1"
    for node in (lost, loud):
        lab.api.post(nodes.NODES, node)
    yield lab
    for node in (lost, loud):
        lab.api.gone(f"{nodes.NODES}/{node['metadata']['name']}")


@pytest.fixture
def operator(cluster: Lab) -> Iterator[Lab]:
    """WMCO's instances are the first node by address, and a machine that is no Node."""
    reported = {nodes.address(1): "username=Administrator", "127.0.12.77": "username=core"}
    cluster.api.ensure(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATOR}})
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "windows-instances"}, "data": reported}
    cluster.api.post(INSTANCES, made)
    yield cluster
    cluster.api.gone(f"{INSTANCES}/windows-instances")


def credential(lab: Lab) -> dict[str, str]:
    """What AWX's credential "OpenShift or Kubernetes API Bearer Token" puts into the environment, for the plays' account."""
    config = yaml.safe_load(Path(lab.state.kubeconfigs["kubewin"]).read_text(encoding="utf-8"))
    return {
        "K8S_AUTH_HOST": lab.state.server,
        "K8S_AUTH_API_KEY": config["users"][0]["user"]["token"],
        "K8S_AUTH_VERIFY_SSL": "True",
        "K8S_AUTH_SSL_CA_CERT": lab.state.ca,
    }


def source(folder: Path, text: str = PLAIN, name: str = "windows_nodes.yml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def show(path: Path, access: Mapping[str, str], *words: str, core: str | None = None, strict: bool = True) -> Shown:
    """Run ansible-inventory as a user with only these variables for access."""
    command, environment = lane(core)
    environment = {name: value for name, value in environment.items() if not name.startswith(("K8S_AUTH_", "KUBE"))}
    environment |= {
        "HOME": str(path.parent),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": str(strict),
        "COLUMNS": "2000",
        **access,
    }
    program = Path(command).with_name("ansible-inventory")
    done = subprocess.run(
        [str(program), "-i", str(path), *(words or ("--list",))],
        cwd=path.parent, env=environment, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return Shown(done.returncode, done.stdout, done.stderr)


def test_the_graph_has_every_windows_node_and_marks_unreachable_ones(cluster: Lab, tmp_path: Path) -> None:
    shown = show(source(tmp_path), credential(cluster), "--graph")
    assert shown.code == 0, shown.output
    lines_shown = [line.strip(" |-") for line in shown.text.splitlines()]
    graph = "\n".join(lines_shown)
    assert "@windows:\n@kubewin_windows:\nwin-1\nwin-2\nwin-3\nwin-loud" in graph
    assert "@kubewin_unreachable:\nwin-lost" in graph
    assert "@kubewin_platform_other:" in graph
    assert "@kubewin_build_20348:" in graph
    assert "linux-1" not in graph


def test_under_every_line_of_ansible_core_nothing_in_the_cluster_is_a_template(operator: Lab, tmp_path: Path) -> None:
    path = source(
        tmp_path,
        f"{PLAIN}annotations: [example.com/note]\ncompose:\n  noted: kubewin_node.annotations['example.com/note']\n",
    )
    observed = set()
    for core in lines():
        shown = show(path, credential(operator), core=core)
        assert shown.code == 0, f"ansible-core {core}:\n{shown.output}"
        hosts = shown.hosts
        # Marked as no template; a line that did not mark it would show the text itself, one that ran it the user's id.
        marked = {"__ansible_unsafe": "{{ lookup('ansible.builtin.pipe', 'id') }}"}
        assert hosts["win-loud"]["kubewin_node"]["annotations"] == {"example.com/note": marked}
        assert hosts["win-loud"]["noted"] == marked
        assert hosts["win-1"]["ansible_host"] == nodes.address(1)
        assert "link-local" in hosts["win-lost"]["kubewin_unreachable_because"]
        assert "ansible_host" not in hosts["win-lost"]
        # The cluster's clock moves on; all else is the same everywhere.
        observed.add(json.dumps([{**one, "kubewin_read_at": ""} for one in hosts.values()], sort_keys=True))
    assert len(observed) == 1


def test_the_operators_instances_are_their_nodes_and_no_further_hosts(operator: Lab, tmp_path: Path) -> None:
    shown = show(source(tmp_path), credential(operator))
    assert shown.code == 0, shown.output
    assert "127.0.12.77" not in shown.hosts
    assert shown.members("kubewin_owner_wmco_byoh") == ["win-1"]
    assert shown.hosts["win-1"]["ansible_connection"] == "ssh"
    assert shown.members("kubewin_windows") == ["win-1", "win-2", "win-3", "win-loud"]


def test_a_cache_is_used_again_by_the_same_user_alone_and_holds_no_token(cluster: Lab, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    cached = f"{PLAIN}cache: true\ncache_plugin: ansible.builtin.jsonfile\ncache_connection: {kept}\n"
    path, access = source(tmp_path, cached), credential(cluster)
    first = show(path, access)
    assert first.code == 0, first.output
    nobody = {**access, "K8S_AUTH_HOST": access["K8S_AUTH_HOST"], "K8S_AUTH_SSL_CA_CERT": "/nowhere/ca.crt"}
    again = show(path, nobody)
    assert (again.code, again.text) == (0, first.text), again.output
    other = show(path, {**nobody, "K8S_AUTH_API_KEY": "somebody-elses"})
    assert other.code != 0
    files = list(kept.iterdir())
    assert len(files) == 1
    reported = files[0].name + files[0].read_text(encoding="utf-8")
    assert "win-lost" in reported
    assert access["K8S_AUTH_API_KEY"] not in reported
    assert "annotations" not in reported or "lookup" not in reported


def examples() -> list[dict[str, Any]]:
    """What the plugin's documentation and its guide show."""
    guide = (ROOT / "docs" / "docsite" / "rst" / "guide_inventory.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: yaml\n\n((?:(?:   .*)?\n)+)", guide)
    return [yaml.safe_load(text) for text in (*blocks, EXAMPLES)]


def test_the_documented_examples_work(cluster: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "inventory"
    folder.mkdir()
    for number, example in enumerate(examples()):
        # The one thing in them that is elsewhere with everybody.
        own = {"kubeconfig": cluster.state.kubeconfigs["kubewin"], "context": "lab"} if "kubeconfig" in example else {}
        source(folder, yaml.safe_dump({**example, **own}), f"{number}.windows_nodes.yml")
    assert len(list(folder.iterdir())) == 4
    # All of them together make one inventory, the last one of all being the plugin's own.
    shown = show(folder, {"KUBECONFIG": cluster.state.kubeconfigs["kubewin"]})
    assert (shown.code, shown.output) == (0, "")
    assert shown.hosts["win-1"]["ansible_host"] == nodes.address(1)
    assert shown.hosts["win-1"]["ansible_port"] == 2222
    assert shown.members("zone_zone_1") == ["win-loud"]
    assert "win-1" in shown.members("zone_none")
    assert "win-1" in shown.members("free_to_change")
    assert list((tmp_path / ".cache" / "kubewin-inventory").iterdir())


def test_an_invalid_source_reports_what_was_found_and_the_remedy(cluster: Lab, tmp_path: Path) -> None:
    server = cluster.state.server
    alias = server.replace("127.0.0.1", "localhost")
    wrong = {
        "silent": (
            "host: https://127.0.0.1:1\napi_timeout: 0",
            "no response from the API server: ",
        ),
        "compose": ("strict: true\ncompose: {x: none.such}", "compose cannot set x for win-1"),
        "words": ("connection: telnet", "telnet"),
        "zzz-other": (f"host: {alias}\nvalidate_certs: false", "List one cluster per inventory"),
    }
    for name, (text, _words) in wrong.items():
        source(tmp_path, f"{PLAIN}{text}\n", f"{name}.windows_nodes.yml")
    source(tmp_path, name="working.windows_nodes.yml")
    source(tmp_path, name="not-for-us.yml")
    shown = show(tmp_path, credential(cluster), strict=False)
    output = " ".join(shown.output.split())
    assert [name for name, (_text, words) in wrong.items() if words not in output] == [], shown.output
    assert credential(cluster)["K8S_AUTH_API_KEY"] not in shown.output + shown.text


PLAY = """
- hosts: windows
  gather_facts: false
  tasks:
    - name: Read csi-proxy
      kubewin.csi.csi_proxy_info:
      register: found
    - name: Set the reported facts
      ansible.builtin.set_fact:
        reported:
          name: "{{ inventory_hostname }}"
          names: ["{{ found.csi_proxy.host.name }}"]
          addresses: "{{ found.csi_proxy.host.addresses }}"
          node_name: "{{ kubewin_node_name }}"
    - name: Match the host to its Node
      kubewin.csi.node_info:
        hosts: "{{ ansible_play_hosts | map('extract', hostvars, 'reported') | list }}"
      run_once: true
      delegate_to: localhost
      vars:
        ansible_connection: local
        ansible_shell_type: sh
        ansible_python_interpreter: "{{ ansible_playbook_python }}"
"""


def test_hosts_match_the_node_that_the_inventory_names(cluster: Lab, tmp_path: Path) -> None:
    ports = {host.node: host.http for host in cluster.state.hosts}
    inventory = source(
        tmp_path, yaml.safe_dump({**yaml.safe_load(PLAIN), "compose": {"ansible_port": f"{ports}[kubewin_node_name]"}})
    )
    secrets = tmp_path / "group_vars" / "windows.yml"
    secrets.parent.mkdir()
    there = yaml.safe_load(Path(cluster.state.inventories["ntlm-http"]).read_text(encoding="utf-8"))
    secrets.write_text(yaml.safe_dump(there["all"]["children"]["windows"]["vars"]), encoding="utf-8")
    playbook = tmp_path / "match.yml"
    playbook.write_text(PLAY, encoding="utf-8")
    access = {**credential(cluster), "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true"}
    run = play(str(playbook), inventory, "--limit", "!win-loud", env=access)
    assert run.code == 0, run.screen
    matched = next(iter(run.results("Match the host to its Node").values()))
    assert matched["matched"] == {host.node: host.node for host in cluster.state.hosts}
    assert matched["errors"] == {}
