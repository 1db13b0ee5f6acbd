# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the inventory, --limit, --tags and the inputs leave a playbook something to do. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..catalog.registry import DRIVERS
from .inputs import as_list, is_on

# Those that work on Windows hosts; the others go over the cluster from localhost alone.
ON_HOSTS = frozenset({"diagnose", "enable_csi", "gather", "preflight", "remove", "status", "verify"})
# The playbooks that have tags.
TAGS: Mapping[str, tuple[str, ...]] = {"enable_csi": ("check", "proxy", "driver", "gate", "summary")}
_WHOLE = {
    "build_csi_proxy": "builds on this machine",
    "handover": "hands over all nodes of a driver, one by one",
    "convert_volumes": "converts the claims of kubewin_convert_claims and uses no host",
}


@dataclass(frozen=True, slots=True)
class Selection:
    """What a run was started with.

    limit: of --limit, None without. hosts: all hosts of the inventory and localhost that it leaves. windows: the Windows
    hosts of the inventory, limited or not. pattern: kubewin_hosts. on_file: the report is for a saved snapshot. tasks: whether your
    tasks upgrade the nodes, on their hosts.
    """

    limit: str | None = None
    hosts: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    pattern: str = "windows"
    cluster_only: bool = False
    on_file: bool = False
    tasks: bool = False


def explain_nothing_to_do(playbook: str, chosen: Selection) -> Iterator[str]:
    """A sentence where the run would do less than it was asked for, or something else."""
    limit, includes_localhost = chosen.limit, "localhost" in chosen.hosts
    if (
        limit is None
        and (playbook in ON_HOSTS or chosen.tasks)
        and chosen.windows
        and not set(chosen.windows) & set(chosen.hosts)
    ):
        # It keeps what it read before the error, and does not put it into the group all.
        yield (
            f"Ansible could not read the whole inventory: {chosen.pattern} has {len(chosen.windows)} hosts, and the group all has none of "
            "them. Correct the error that Ansible's warnings above name."
        )
        return
    if playbook == "upgrade":
        if limit not in (None, "localhost") and not chosen.tasks:
            yield (
                f"--limit is {limit}, but upgrade with this hook takes its nodes from the cluster. Run without --limit; "
                "kubewin_upgrade_nodes selects nodes."
            )
        elif limit is not None and not includes_localhost:
            yield f"--limit is {limit}, but upgrade plans and ends on localhost. Run with --limit {limit},localhost."
        return
    if playbook not in ON_HOSTS:
        if limit is not None and chosen.hosts != ("localhost",):
            yield f"--limit is {limit}, but {playbook} {_WHOLE[playbook]}. Run without --limit."
        return
    if chosen.windows:
        if chosen.cluster_only:
            yield (
                f"kubewin_cluster_only is true, but the inventory has {len(chosen.windows)} Windows hosts "
                f"({chosen.pattern}). Remove kubewin_cluster_only to work on them, or use an inventory without them."
            )
        if limit is not None and not set(chosen.windows) & set(chosen.hosts):
            yield f"--limit is {limit}, which leaves no Windows host ({chosen.pattern}). Name Windows hosts, or run without --limit."
        return
    if not chosen.cluster_only and not chosen.on_file:
        yield (
            f"The inventory has no Windows host ({chosen.pattern} matches none), expected at least one. Check "
            "Ansible's warnings above: an unreadable inventory counts as empty. Use another inventory, or set "
            "kubewin_hosts. To work on the cluster alone, without csi-proxy on hosts, set kubewin_cluster_only=true."
        )
    elif limit is not None and not includes_localhost:
        yield f"--limit is {limit}, but without Windows hosts {playbook} runs on localhost. Run without --limit."


def explain_missing_choice(playbook: str, inputs: Mapping[str, object], chosen: Selection) -> Iterator[str]:
    """A sentence where the run would have to guess what it is for. inputs: as the plays have them; a blank one is not given."""
    drivers = list(dict.fromkeys(as_list(inputs.get("kubewin_drivers") or "")))
    driver_names = ", ".join(sorted(DRIVERS))
    if playbook == "remove":
        proxy = is_on(inputs.get("kubewin_remove_csi_proxy"))
        spared = ", ".join(host for host in chosen.windows if host not in chosen.hosts)
        if proxy and not chosen.windows:
            yield (
                f"kubewin_remove_csi_proxy is set, and no host of the inventory matches kubewin_hosts ({chosen.pattern}). "
                "Use the inventory of the Windows hosts from which to remove csi-proxy."
            )
        if (drivers or not proxy) and spared:
            yield (
                f"--limit leaves out {spared}, but the node plugin of {', '.join(drivers) or 'the driver'} is removed from all nodes. "
                "Run without --limit. To remove only csi-proxy from some hosts, use --limit with kubewin_remove_csi_proxy alone."
            )
    elif playbook == "handover" and (len(drivers) > 1 or not inputs.get("kubewin_handover")):
        yield (
            f"kubewin_drivers is {', '.join(drivers) or 'not given'} and kubewin_handover "
            f"{inputs.get('kubewin_handover') or 'not given'}, expected one driver and to_platform or to_kubewin. "
            f"Name one of {driver_names}, for example -e kubewin_drivers=vsphere -e kubewin_handover=to_platform."
        )
    elif playbook == "convert_volumes" and not as_list(inputs.get("kubewin_convert_claims") or ""):
        yield (
            f"kubewin_convert_claims is {inputs.get('kubewin_convert_claims') or 'not given'}, expected claims. "
            "Name them as namespace/name, for example -e kubewin_convert_claims=shop/data-db-0."
        )


def explain_wrong_tags(playbook: str, run: Iterable[str], skip: Iterable[str]) -> Iterator[str]:
    """A sentence for each tag of --tags and --skip-tags that the playbook does not have: Ansible runs nothing for it, and ends with success.

    run: without --tags it is all.
    """
    playbook_tags = TAGS.get(playbook, ())
    expected = f", expected {', '.join(playbook_tags[:-1])} or {playbook_tags[-1]}." if playbook_tags else ""
    for option, tags in (("--tags", [tag for tag in run if tag != "all"]), ("--skip-tags", skip)):
        for tag in dict.fromkeys(tags):
            if tag not in playbook_tags:
                yield f"{option} is {tag}" + (expected or f", but {playbook} has no tags. Run without {option}.")
