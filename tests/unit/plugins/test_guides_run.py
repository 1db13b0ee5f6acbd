# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command and YAML block of README, role READMEs and guides can be typed.

Programs, playbooks, modules, roles, variables, options and values are checked with the code that reads them: the argument parsers of
Ansible and the lab, the input check of the playbooks, argument specs, Kubernetes' schemas.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import constants
from ansible.cli import CLI
from ansible.cli.adhoc import AdHocCLI
from ansible.cli.config import ConfigCLI
from ansible.cli.doc import DocCLI
from ansible.cli.galaxy import GalaxyCLI
from ansible.cli.inventory import InventoryCLI
from ansible.cli.playbook import PlaybookCLI
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.parsing.splitter import parse_kv
from ansible.playbook.play import Play
from ansible.playbook.task import Task
from ansible.plugins.loader import connection_loader, fragment_loader, module_loader
from ansible.utils.plugin_docs import get_docstring
from ansible_collections.kubewin.csi.plugins.inventory import windows_nodes
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import driver_options, variable_names
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import list_wrong_inputs
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import CLUSTER_ARG_SPEC
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.desired import CSI_PROXY, INFO
from ci.cli import lane_name
from ci.venvs import LaneError
from kubernetes_validate import ValidationError  # type: ignore[import-untyped]  # the package has neither types nor stubs
from lab import cli as lab
from unit.plugins.shown import BESIDE, PAGES, ROOT, RST, Block, blocks, lines, title
from unit.roles.schemas import validate
from unit.roles.test_rbac import IN_NAMESPACES, ROLES
from winrm.protocol import Protocol

PREFIX = "kubewin.csi."
# Explanation and reference, which show no command.
WITHOUT_BLOCKS = {
    "conversion_steps",
    "exit_codes",
    "findings",
    "glossary",
    "how_it_works",
    "lab",
    "platforms",
    "readiness_report",
    "variables",
}
TEMPLATED = "{{"
# Their modules are documentation alone; the actions have the specs.
ON_HOSTS = {"csi_proxy": CSI_PROXY, "csi_proxy_info": INFO}
# Programs of others: only their names are checked.
OTHERS = {
    *("ansible-builder", "ansible-rulebook", "chmod", "molecule"),
    *("aws", "cd", "cp", "echo", "export", "find", "git", "go", "icacls", "kinit", "klist", "oc", "pip", "python3", "reg", "rm", "sed", "skopeo", "sudo"),
    *("tar", "winrm"),
}  # fmt: skip
CLIS: Mapping[str, type[CLI]] = {
    "ansible": AdHocCLI,
    "ansible-config": ConfigCLI,
    "ansible-doc": DocCLI,
    "ansible-galaxy": GalaxyCLI,
    "ansible-inventory": InventoryCLI,
    "ansible-playbook": PlaybookCLI,
}
# Of the build of an execution environment.
STAGES = ("base", "galaxy", "builder", "final")
KUBECTL = {
    "annotate",
    "apply",
    "config",
    "cordon",
    "create",
    "delete",
    "describe",
    "drain",
    "exec",
    "get",
    "label",
    "logs",
    "patch",
    "taint",
    "uncordon",
}


def pages() -> list[Any]:
    return [pytest.param(page, id=title(page)) for page in PAGES]


def of_kind(page: Any, *kinds: str) -> list[Block]:
    return [block for block in blocks(page) if block.kind in kinds]


def commands(page: Any) -> list[str]:
    """Every command of a page, without its prompt."""
    return [line.split(" ", 1)[1] for block in of_kind(page, "console") for line in lines(block)]


# Commands


@pytest.mark.parametrize("page", [*pages(), *(pytest.param(page, id=title(page)) for page in BESIDE)])
def test_every_command_can_be_typed(page: Any) -> None:
    for command in commands(page):
        checked(command)


# tests/integration/test_new_driver.py follows the page of a new driver, which names that driver.
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=title(page)) for page in (*PAGES, *BESIDE) if page.stem != "guide_new_driver"]
)
def test_a_command_in_a_sentence_can_be_typed(page: Any) -> None:
    mark = "`" if page.suffix == ".md" else "``"
    programs = "|".join((*CLIS, "make"))
    for command in re.findall(rf"{mark}((?:{programs}) [^`]+){mark}", page.read_text(encoding="utf-8")):
        checked(" ".join(command.split()))


def checked(command: str) -> None:
    for words in simple(command):
        with_checked_words(words, command)


def simple(command: str) -> Iterator[list[str]]:
    """The simple commands of a line of the shell, in words; loops, assignments and functions of the shell without what they are."""
    if command.startswith(("(umask", "show() {", "FILES=")):
        # The kubeconfig of an account and its folder of files: tests/integration/test_shipped_roles.py runs those of the tutorial.
        assert command in commands(RST / "tutorial.rst"), command
        return
    loop = re.fullmatch(r"for (\w+) in (.*?); do\s+(.*?); done", command, re.DOTALL)
    if loop:
        for value in loop[2].split():
            yield from simple(loop[3].replace(f"${loop[1]}", value))
        return
    for part in re.split(r" (?:\||&&) ", command):
        words = shlex.split(part, comments=True)
        yield words[sum(1 for _one in itertools.takewhile(re.compile(r"[A-Z_]+=").match, words)) :]


def with_checked_words(words: list[str], command: str) -> None:
    program, *rest = words
    if program in CLIS:
        parsed(CLIS[program], words)
    if program == "ansible-playbook" or words[:2] == ["ansible-navigator", "run"]:
        playbook(rest)
    elif program == "ansible" and "-m" in rest:
        options = parse_kv(rest[rest.index("-a") + 1]) if "-a" in rest else {}
        task(rest[rest.index("-m") + 1], options)
    elif program == "kubectl":
        kubectl(rest, command)
    elif program == "make":
        make(rest)
    elif program not in (*CLIS, "ansible-navigator"):
        assert program in OTHERS or program in ("grep", "sort", "python"), command


def parsed(cli: type[CLI], words: list[str]) -> None:
    """Let Ansible read the options of its own program."""
    made = cli(list(words))
    made.init_parser()
    assert made.parser is not None
    made.parser.parse_args(words[1:])


def playbook(words: list[str]) -> None:
    """A playbook that is there, with variables that it takes and values that fit."""
    extra = [after for word, after in itertools.pairwise(words) if word == "-e"]
    given = {name: value for one in extra for name, value in parse_kv(one).items()}
    ours = [word.removeprefix(PREFIX) for word in words if word.startswith(PREFIX)]
    for word in words:
        if word.startswith("playbooks/"):
            assert (ROOT / word).is_file(), word
            ours.append(Path(word).stem.replace("-", "_"))
    if ours:
        (name,) = ours
        assert (ROOT / "playbooks" / f"{name}.yml").is_file(), words
        refused, elsewhere = variable_names.find_refused_variables(name, given, given, [])
        assert (refused, elsewhere) == ([], []), words
    values(given)


def kubectl(words: list[str], command: str) -> None:
    where = {*after("-n", words), *after("--kubeconfig", words)}
    assert next(word for word in words if not word.startswith("-") and word not in where) in KUBECTL, command
    if "create" in words and ("clusterrolebinding" in words or "rolebinding" in words):
        (role,) = [word.removeprefix("--clusterrole=") for word in words if word.startswith("--clusterrole=")]
        assert role in {*ROLES, "kubewin-preflight"}, command
        assert (role in IN_NAMESPACES) == ("rolebinding" in words), command
    for driver in DRIVERS.values():
        if "get" in words and set(driver.controller.deployments) & set(words):
            assert after("-n", words)[0] in driver.controller.namespaces, command


def after(option: str, words: list[str]) -> list[str]:
    return [following for word, following in itertools.pairwise(words) if word == option]


def make(words: list[str]) -> None:
    target, *given = words
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), target
    for one in given:
        name, _equals, value = one.partition("=")
        assert name in ("ARGS", "CMD", "CORE", "PARTS"), words
        assert name != "CORE" or lane_name(value), words
        if value.startswith("python -m lab "):
            lab._parser().parse_args(shlex.split(value)[3:])


# YAML


@pytest.mark.parametrize("page", pages())
def test_every_yaml_block_fits_what_reads_it(page: Any) -> None:
    for block in of_kind(page, "yaml"):
        for found in yaml.safe_load_all(block.text):
            fits(found)


def fits(found: Any) -> None:
    """A playbook, a file of tasks, an inventory, requirements, a Kubernetes object, or variables."""
    if isinstance(found, list):
        for one in found:
            play(one) if "hosts" in one else task_of(one)
    elif "apiVersion" in found:
        validate(found, 36)
    elif "collections" in found:
        assert [one["name"] for one in found["collections"]] == ["kubewin.csi"]
    elif str(found.get("plugin", "")).startswith(PREFIX):
        taken = {**yaml.safe_load(windows_nodes.DOCUMENTATION)["options"], **constructed(), **CLUSTER_ARG_SPEC}
        assert set(found) <= set(taken), found
    elif "all" in found:
        group(found["all"])
    elif "additional_build_steps" in found:
        # The schema of ansible-builder 3.
        assert set(found["additional_build_steps"]) <= {
            f"{at}_{stage}" for at in ("prepend", "append") for stage in STAGES
        }
    elif set(found) != {"vars"}:
        # What is below vars of a task is the user's own.
        variables(found)


@cache
def constructed() -> dict[str, Any]:
    """Options of every inventory plugin that builds groups and has a cache."""
    found: dict[str, Any] = {}
    for fragment in ("constructed", "inventory_cache"):
        found |= yaml.safe_load(fragment_loader.get(fragment).DOCUMENTATION)["options"]
    return found


def play(found: Mapping[str, Any]) -> None:
    assert set(found) <= set(Play.fattributes), found
    for defaults in found.get("module_defaults", {}).values():
        assert set(defaults) <= set(CLUSTER_ARG_SPEC)
    for one in found["tasks"]:
        task_of(one)


def task_of(found: Mapping[str, Any]) -> None:
    (name,) = set(found) - set(Task.fattributes)
    task(name, found[name])
    role = found[name]["name"] if name.endswith(("import_role", "include_role")) else ""
    if role.startswith(PREFIX):
        options = set(options_of(role.removeprefix(PREFIX)))
        assert set(found.get("vars", {})) <= options, found
        values(found.get("vars", {}))


def task(name: str, options: Mapping[str, Any]) -> None:
    """Options that the module has, with values that fit; those that it requires."""
    if not name.startswith(PREFIX):
        assert set(options) <= set(documented(name)) | {"apply"}, name
        return
    own = own_options(name.removeprefix(PREFIX))
    taken = {**CLUSTER_ARG_SPEC, **own}
    assert set(options) <= set(taken), name
    assert {key for key, spec in own.items() if spec.get("required")} <= set(options), name
    for key, value in options.items():
        if TEMPLATED not in str(value):
            spec = {part: what for part, what in taken[key].items() if part != "required"}
            assert ArgumentSpecValidator({key: spec}).validate({key: value}).error_messages == [], (name, key)


def own_options(name: str) -> Mapping[str, Any]:
    """Options of one of our modules, without those of the cluster."""
    if name in ON_HOSTS:
        return ON_HOSTS[name]
    action = importlib.import_module(f"ansible_collections.{PREFIX}plugins.action.{name}")
    if issubclass(action.ActionModule, ClusterAction):
        spec: Mapping[str, Any] = action.ActionModule.argument_spec
    else:
        spec = importlib.import_module(f"ansible_collections.{PREFIX}plugins.modules.{name}").ARGUMENT_SPEC
    return spec


@cache
def documented(module: str) -> dict[str, Any]:
    """Options of one of Ansible's modules."""
    path = module_loader.find_plugin(module.removeprefix("ansible.builtin."))
    assert path, module
    options: dict[str, Any] = get_docstring(path, fragment_loader)[0]["options"]
    return options


def group(found: Mapping[str, Any]) -> None:
    """A group of an inventory."""
    assert set(found) <= {"vars", "hosts", "children"}, found
    variables(found.get("vars") or {})
    for host in (found.get("hosts") or {}).values():
        variables(host or {})
    for child in (found.get("children") or {}).values():
        group(child)


def variables(given: Mapping[str, Any]) -> None:
    """Variables of hosts or of a play."""
    assert variable_names.find_refused_variables("enable_csi", given, [], []) == ([], []), given
    for name in given:
        assert name.startswith(("kubewin_", "csi_proxy_", *variable_names.DRIVER_ROLES)) or name in of_connections(), (
            name
        )
    values(given)


@cache
def of_connections() -> frozenset[str]:
    """Connection variables of a host. The connection winrm passes unknown ones to pywinrm."""
    found = set(constants.COMMON_CONNECTION_VARS) | {"ansible_shell_type"}
    for connection in ("winrm", "psrp", "ssh"):
        doc = get_docstring(connection_loader.find_plugin(connection), fragment_loader)[0]
        found |= {var["name"] for option in doc["options"].values() for var in option.get("vars", ())}
    return frozenset(found | {f"ansible_winrm_{name}" for name in inspect.signature(Protocol.__init__).parameters})


def values(given: Mapping[str, Any]) -> None:
    """The errors of the playbooks, the roles of drivers and the role csi_proxy for these values."""
    reported = {name: value for name, value in given.items() if TEMPLATED not in str(value)}
    assert list_wrong_inputs(reported) == []
    for driver in DRIVERS:
        assert driver_options.list_wrong_options(driver, reported) == []
    for name, value in reported.items():
        option = name.removeprefix("csi_proxy_")
        if option != name:
            spec = {key: what for key, what in CSI_PROXY[option].items() if key != "required"}
            assert ArgumentSpecValidator({option: spec}).validate({option: value}).error_messages == [], name


@cache
def options_of(role: str) -> frozenset[str]:
    """The variables of a role."""
    if role in variable_names.DRIVER_ROLES:
        return frozenset(driver_options.map_variables(role.removesuffix("_csi")))
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    return frozenset(name for entry in specs["argument_specs"].values() for name in entry["options"])


# What is checked finds what is wrong


@pytest.mark.parametrize(
    "command",
    [
        "ansible-playbook -i inventory.yml kubewin.csi.enable_it",
        "ansible-playbook -i inventory.yml kubewin.csi.verify -e kubewin_driver=vsphere",
        "ansible-playbook -i inventory.yml kubewin.csi.verify -e kubewin_drivers=vsfere",
        "ansible-playbook -i inventory.yml kubewin.csi.enable_csi -e smb_csi_mode=proxy",
        "ansible-playbook -i inventory.yml kubewin.csi.enable_csi --inventary x",
        "ansible -i inventory.yml windows -m kubewin.csi.csi_proxy_infos",
        "ansible localhost -m kubewin.csi.driver_info -a drivers=vsphere",
        "ansible-galaxy collection instal kubewin.csi",
        "kubectl create clusterrolebinding x --clusterrole=kubewin-csi-deploy --serviceaccount=kubewin:kubewin",
        "kubectl -n x create rolebinding x --clusterrole=kubewin-csi-nothing --serviceaccount=kubewin:kubewin",
        "for role in kubewin-csi kubewin-cso; do\n    kubectl create clusterrolebinding $role --clusterrole=$role; done",
        "kubectl -n default get deployment vsphere-csi-controller",
        'make lane CORE=2.19 CMD="python -m lab upp --name mine"',
        "make demos",
        'make lane CORE=2.15 CMD="ansible-playbook --version"',
        "ansible-playbook playbooks/enable-csi.yml -e kubewin_driver=vsphere",
        "FILES=~/.ansible/collections/elsewhere",
        "ansible-doc -t rolle kubewin.csi.csi_proxy",
        "kubctl get pods",
    ],
)
def test_a_command_that_cannot_work_is_found(command: str) -> None:
    with pytest.raises((AssertionError, LaneError, ModuleNotFoundError, SystemExit)):
        checked(command)


@pytest.mark.parametrize(
    "text",
    [
        "$ make demo\nkubectl get pods\n",
        "kubectl get pods\n",
        "$ for one in a b; do\n    kubectl get $one; done\nkubectl get pods\n",
        "$ cat <<EOF\nhello\nEOF\nkubectl get pods\n",
    ],
)
def test_a_line_that_would_not_be_checked_is_found(text: str) -> None:
    with pytest.raises(AssertionError, match="no prompt before"):
        list(lines(Block("page", "console", text)))


@pytest.mark.parametrize(
    "text",
    [
        "kubewin_driver: [smb]",
        "kubewin_drivers: [smp]",
        "smb_csi_mode: proxy",
        "csi_proxy_state: never",
        "ansible_winrm_ca_trust: /etc/x.pem",
        "all: {vars: {kubewin_fail_on: sometimes}}",
        "plugin: kubewin.csi.windows_nodes\nadress: [InternalIP]",
        "- hosts: localhost\n  taskz: []\n  tasks: []",
        "- kubewin.csi.volume_data: {namespace: shop, claim: [a]}",
        "- ansible.builtin.command: {argvs: [x]}",
        "- ansible.builtin.import_role: {name: kubewin.csi.smb_csi}\n  vars: {smb_csi_modus: auto}",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: x}\nspec: {accessMode: [ReadWriteOnce]}",
    ],
)
def test_yaml_that_cannot_work_is_found(text: str) -> None:
    with pytest.raises((AssertionError, ValidationError)):
        fits(yaml.safe_load(text))


# Pages


def test_every_other_page_shows_something_to_type() -> None:
    without = {title(page) for page in PAGES if not of_kind(page, "console", "yaml")}
    assert without - {f"roles/{role}/README.md" for role in ("csi_driver", "kubewin")} == WITHOUT_BLOCKS


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    # tests/integration/test_new_driver.py follows that page; text is what programs print, PowerShell needs Windows.
    of_that_page = {"python", "diff", "yaml+jinja"}
    for page in PAGES:
        kinds = {block.kind for block in blocks(page)} - (of_that_page if page.stem == "guide_new_driver" else set())
        assert kinds <= {"console", "yaml", "text", "powershell"}, page.name


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=title)
def test_no_block_is_without_a_kind(page: Path) -> None:
    assert unmarked(page.read_text(encoding="utf-8"), page.suffix) == []
    for block in of_kind(page, "text"):
        assert not re.search(r"^(\$|C:\\>) ", block.text, re.MULTILINE), block.text


def unmarked(text: str, suffix: str) -> list[str]:
    """What begins a block of code that `blocks` does not see."""
    if suffix == ".md":
        fences = re.findall(r"^ *(?:```|~~~).*", text, re.MULTILINE)
        return [fence for fence in fences[::2] if not re.fullmatch(r" *```[\w+]+", fence)]
    others = r"\.\. (?:code|sourcecode|parsed-literal|literalinclude|include|raw|doctest)::.*|\.\. code-block::\s*$"
    return re.findall(rf"^ *(?:{others}|(?!\.\. ).*::$|>>> .*)", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("```\nmake demo\n```\n", ".md"),
        ("~~~console\n$ make demo\n~~~\n", ".md"),
        ("Run this::\n\n   make demo\n", ".rst"),
        (".. code-block::\n\n   make demo\n", ".rst"),
        (".. parsed-literal::\n\n   make demo\n", ".rst"),
    ],
)
def test_a_block_that_would_not_be_checked_is_found(text: str, suffix: str) -> None:
    assert len(unmarked(text, suffix)) == 1


def test_pages_name_findings_that_exist() -> None:
    known = set(re.findall(r"^(CSI-[A-Z]\d\d) \(", (RST / "findings.rst").read_text(encoding="utf-8"), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"\bCSI-[A-Z]\d\d\b", page.read_text(encoding="utf-8"))) <= known, page.name


def test_a_how_to_begins_with_something_to_type() -> None:
    for page in RST.glob("guide_*.rst"):
        before = page.read_text(encoding="utf-8").split("\n---", 1)[0]
        # Its files come first, and a test follows them.
        assert ".. code-block::" in before or page.stem == "guide_new_driver", page.stem


def test_the_glossary_is_short_and_sorted() -> None:
    terms = re.findall(r"^   (\S.*)$", (RST / "glossary.rst").read_text(encoding="utf-8"), re.MULTILINE)
    assert terms == sorted(terms, key=str.casefold)
    assert 1 < len(terms) <= 25


def test_every_page_is_in_the_table_of_contents() -> None:
    sections = yaml.safe_load((RST.parent / "extra-docs.yml").read_text(encoding="utf-8"))["sections"]
    listed = [name for section in sections for name in section["toctree"]]
    assert sorted(listed) == sorted(page.stem for page in RST.glob("*.rst"))
