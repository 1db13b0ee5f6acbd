# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps and the state of a conversion, as text. Pure."""

from __future__ import annotations

from .actions import StopConversion
from .record import STEPS, ConversionRecord, ConversionStep

# The variables that make a conversion final, and that roll it back before.
FINAL, ROLL_BACK = "final (kubewin_convert_final=true)", "state rolled_back (kubewin_convert_roll_back=true)"


def describe_steps(record: ConversionRecord, *, final: bool) -> list[dict[str, str]]:
    """Describe the remaining steps, in order. final: this run makes it final, so it cannot be rolled back later."""
    remaining = STEPS[STEPS.index(record.step) :]
    if record.direction == "forward" and not final:
        remaining = remaining[: remaining.index("finish") + 1] if "finish" in remaining else remaining
    return [{"step": step, "description": text} for step in remaining if (text := _describe_step(record, step, final))]


def _describe_finish(record: ConversionRecord, final: bool) -> str:
    restoration = f"restore the policy {record.policy}" if record.policy != "Retain" else ""
    if record.direction == "rollback":
        return restoration
    if final:
        return f"{restoration or 'leave the policy at Retain'}; the conversion is then final and cannot be rolled back"
    return (
        f"keep PersistentVolume {record.volume} at Retain and the claim locked, so that {ROLL_BACK} can roll the "
        f"conversion back, until you run it again with {FINAL}"
        + (f", which does this: {restoration}" if restoration else "")
    )


def _describe_step(record: ConversionRecord, step: ConversionStep, final: bool) -> str:
    claim = f"PersistentVolumeClaim {record.title}"
    is_rollback = record.direction == "rollback"
    workloads = (
        ", ".join(f"{workload.kind} {workload.name} ({workload.replicas})" for workload in record.workloads)
        or "no workload"
    )
    descriptions: dict[ConversionStep, str] = {
        "lock": f"lock {claim}",
        "rehearse": "check both volumes (under scratch names) and the helper pod by the API server's dry run",
        "quiesce": f"set the policy of PersistentVolume {record.volume} to Retain, wait until the provisioner releases it; "
        f"scale to 0: {workloads}; wait until the volume is detached everywhere",
        "baseline": "" if is_rollback else "read all data through a helper pod, for the later comparison",
        "delete_volume": f"delete the object PersistentVolume {record.volume}; {record.old_handle or record.new_handle} stays; "
        "wait until attacher and provisioner release it, then remove kubernetes.io/pv-protection",
        "forget": "wait until the driver's syncer has deregistered the disk"
        if record.forgets and not is_rollback
        else "",
        "create_volume": f"create PersistentVolume {record.volume} "
        + (f"({record.driver}, {record.new_handle}, Retain)" if not is_rollback else "as before (Retain)")
        + f", bound to {claim}",
        "canary": "" if is_rollback else "attach it to a helper pod by the new handle, read all data, compare",
        "restore": f"scale back: {workloads}; wait until all pods run on Windows",
        "finish": _describe_finish(record, final),
        "unlock": f"unlock {claim}",
        "done": "",
    }
    return descriptions[step]


def describe_conversion(record: ConversionRecord | None) -> str:
    if record is None:
        return "no conversion"
    if not record.sequence:
        return "a claim that is not converted"
    return f"run {record.run} at step {record.step} ({record.direction})"


def describe_stop(record: ConversionRecord, stop: StopConversion) -> str:
    """Describe what was found, the remedy, and the state of the objects."""
    return f"{stop.state}, expected {stop.expected}. {stop.remedy} {describe_state(record)}"


def describe_state(record: ConversionRecord) -> str:
    """Describe where a run stopped, and how it continues."""
    return (
        f"Run {record.run} is at step {record.step} ({record.direction}); the disk of PersistentVolume {record.volume} "
        f"({record.old_handle}) is unchanged. Run again to continue, or roll back."
    )
