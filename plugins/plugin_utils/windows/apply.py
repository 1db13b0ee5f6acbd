# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a plan's steps. Every line but staging's is guarded by the node lock; one line commits; an early end is rolled back.

A release is staged in a directory of this run without the lock, since a download may take long: a run that dies meanwhile keeps
no other one waiting. The lock is taken against other runs, and the plan's preconditions are read again then.

The old release runs until the new one is staged and verified. Then ``sc config binPath=`` commits, and only after that
the service is stopped and started. Command line and PID of the old one are recorded first, so that a run that finds the
swap unproven knows what to finish, and to what to return.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from . import access, model, plan, stage
from .commands import Steps, builtin, discard_output, program, tolerate
from .control import Control, Report, WaitLimits
from .errors import SHARING_VIOLATION, ChangedError, ChannelError, NodeError, build_directory_error, find_meaning
from .lock import NodeLock
from .model import Desired, HostSnapshot, Service
from .node import Answers, Failure, WindowsHost
from .observe import IMAGE, find_running_services, is_listed, list_directory_itself
from .rollback import Rollback, build_forget_steps, build_remember_steps, locate_parameters, set_value

_CHANGED = "the service changed while the new release was staged"


class HostApplier:
    """One run's attempt at one plan. Create anew for each plan."""

    def __init__(
        self,
        node: WindowsHost,
        desired: Desired,
        lock: NodeLock,
        limits: WaitLimits,
        report: Report,
        observe: Callable[[], HostSnapshot],
        confirm: Callable[[], None],
    ) -> None:
        self.node = node
        self.desired = desired
        self.lock = lock
        self.limits = limits
        self.report = report
        self.control = Control(node, lock, limits, report)
        self._observe, self._confirm = observe, confirm
        self._run = lock.me.identity
        """names what only this run uses; the lock may change its own name"""
        self._staged = False
        """whether the staging directory of this run may be there"""
        self._touched = False
        """whether the swap has begun: from then on an early end rolls it back"""
        self._committed = False
        """whether this run set (or tried to set) another command line"""
        self._proven_pid = 0

    def apply(self, host_plan: plan.HostPlan, snapshot: HostSnapshot) -> None:
        """Carry out ``host_plan``, made for ``snapshot``. Raises ChangedError when the node changed meanwhile, else NodeError."""
        try:
            self._prepare(host_plan, snapshot)
            if self.desired.state == "absent":
                self._remove(host_plan, snapshot)
            else:
                self._swap(host_plan, snapshot)
            self._finish(host_plan, snapshot)
        except BaseException as error:
            # BaseException: Ansible's task timeout and Ctrl-C must not leave the node between two releases either.
            self._roll_back(error, snapshot)
            raise

    # -- before the commit: nothing that serves is touched -------------------------------------------------------

    def _prepare(self, host_plan: plan.HostPlan, snapshot: HostSnapshot) -> None:
        source = self.desired.source
        steps: Steps = []
        stdin: BinaryIO | None = None
        fetches = 0.0
        stages = host_plan.has("fetch", "push")
        if stages and snapshot.lock is not None and not self.lock.held:
            # Of an ended run: its line ends before anything is staged.
            self.acquire(snapshot.lock, [])
        for step in host_plan.steps:
            if step.kind == "remember_directory":
                steps.append(("remember", set_value(model.OWN_KEY, "InstallDir", model.INSTALL_DIR)))
            elif step.kind in ("create_directory", "create_log_directory"):
                steps.append((step.kind, builtin("md", step.target)))
            elif step.kind == "secure_directory":
                steps += self._build_secure_steps(snapshot.install_dir_entries)
            elif step.kind == "fetch" and source is not None:
                self.report(step.description)
                fetches = stage.FETCH_SECONDS
                steps += stage.build_fetch_steps(source, self._run)
                stdin = stage.render_fetch_input(source)
        if not stages:
            self.acquire(snapshot.lock, steps)
            return
        if steps:
            self._stage(steps, stdin, fetches)
        if host_plan.has("push") and source is not None:
            self.report(f"sending {source.location}")
            with stage.pack_executable(Path(source.location)) as archive:
                self._stage(stage.build_push_steps(self._run), archive, stage.FETCH_SECONDS)
        name = next((step.target for step in host_plan.steps if step.kind == "create_service"), "")
        # On the same line, so that a first install costs no further request.
        self.acquire(None, [("no service", discard_output(program("sc", "query", name)))] if name else [])
        if not name:
            self._check_unchanged(snapshot)

    def _stage(self, steps: Steps, stdin: BinaryIO | None, extra_seconds: float) -> None:
        """Run steps that only this run's own directory and names depend on, without the lock. extra_seconds: what they may take longer than a line."""
        leaving = self.lock.release_steps() if self.lock.held else []
        self._staged = True
        answers, failure = self.node.chain([*leaving, *steps], stdin=stdin, timeout=self.limits.line + extra_seconds)
        if failure is None or failure.label not in dict(leaving):
            self.lock.held = False
        if any(label == "hash" for label, dummy in steps):
            self._verify(answers, failure)
        else:
            self._check_staging(failure)

    def acquire(self, current: model.LockOwner | None, steps: Steps) -> None:
        """Take the node lock and run the first steps on the same line. current: the lock of a run that has ended."""
        taking = [] if self.lock.held else self.lock.acquire_steps(current)
        if not self.lock.held and current is not None:
            # A line of the ended run may still be running: take the lock alone, let that line reach its next guard,
            # and read again before deciding anything.
            failure = self.node.chain(taking, timeout=self.limits.line)[1]
            if failure is None:
                self.lock.held = True
                self.report(f"took over the node lock of {current.process} ({current.identity})")
                self.node.clock.sleep(self.limits.takeover)
            raise ChangedError("the node lock has another holder")
        if not taking and not steps:
            return
        if not taking:
            taking = self.lock.renew_steps()
        # From here on the lock may be ours, whatever becomes of the reply; giving it back is guarded by our name in it.
        self.lock.held = True
        failure = self.node.chain([*taking, *steps], timeout=self.limits.line)[1]
        if failure is not None and failure.label.startswith("lock"):
            self.lock.held = False
            raise ChangedError("another run took the node lock") from self._build_lock_error(failure)
        if failure is not None and failure.label == "no service":
            return
        self._check_staging(failure)
        if any(label == "no service" for label, dummy in steps):
            raise ChangedError(_CHANGED)

    def _verify(self, answers: Answers, failure: Failure | None) -> None:
        """See that what was staged is the desired release, once a scanner lets it be read."""

        def read_hash_again() -> Failure | None:
            nonlocal answers
            answers, hash_failure = self.node.chain(stage.build_hash_steps(self._run), timeout=self.limits.line)
            return hash_failure

        if failure is not None and (failure.label, failure.code) == ("hash", SHARING_VIOLATION):
            failure = self._retry_while_scanned("hash", read_hash_again)
        self._check_staging(failure)
        stage.check_digest(self.desired, answers.text("hash"))

    def _retry_while_scanned(self, label: str, attempt: Callable[[], Failure | None]) -> Failure | None:
        """``attempt``, again after growing pauses while the step of this label fails: virus scans hold new files open."""
        failure = attempt()
        for pause in self.limits.scans:
            if failure is None or failure.label != label:
                break
            self.report(f"another process, such as a virus scan, has the new executable open; retrying in {pause:g} s")
            self.node.clock.sleep(pause)
            failure = attempt()
        return failure

    @staticmethod
    def _build_lock_error(failure: Failure) -> NodeError:
        return NodeError(
            "lock_failed",
            f"The node lock {model.LOCK_DIR} cannot be taken.",
            remedy=f"Check that the account may write to {model.LOCK_PARENT}.",
            detail=failure.words,
        )

    def _build_secure_steps(self, entries: tuple[str, ...]) -> Steps:
        """Close the directory, then take over what is in it: nobody else gets in meanwhile. entries: its directories."""
        # /inheritance:r drops inherited entries and /grant:r one account's explicit ones; others survive without /reset.
        grants = [word for sid in access.FULL_CONTROL for word in ("/grant:r", f"*{sid}:(OI)(CI)F")]
        path = model.INSTALL_DIR
        return [
            ("access", discard_output(program("icacls", path, "/reset"))),
            ("access own", discard_output(program("icacls", path, "/inheritance:r", *grants))),
            # An owner may change the list whatever it says.
            ("access owner", discard_output(program("icacls", path, "/setowner", f"*{access.OWNER}", "/T", "/Q"))),
            *(
                (f"access {name}", discard_output(program("icacls", rf"{path}\{name}", "/reset", "/T", "/Q")))
                for name in entries
            ),
        ]

    def _check_staging(self, failure: Failure | None) -> None:
        if failure is None:
            return
        self.control.raise_if_lock_lost(failure)
        label, code = failure.label, failure.code
        if label == "remember":
            raise NodeError(
                "access_denied",
                f"The node did not let the registry key {model.OWN_KEY} be written (reg.exe answered {code}).",
                remedy="Use an account that is a member of the local Administrators group (elevated token).",
                detail=failure.words,
            )
        if label in ("create_directory", "create_log_directory"):
            path = model.INSTALL_DIR if label == "create_directory" else self.desired.log_file.rpartition("\\")[0]
            raise ChangedError(f"{path} exists") from build_directory_error(path, failure.words)
        if label.startswith("access"):
            meaning = find_meaning(code)
            raise NodeError(
                "access_denied" if code == 5 else "access_failed",
                f"The access rights of {model.INSTALL_DIR} cannot be set: {meaning.text} (icacls {code}).",
                remedy=meaning.remedy,
                detail=failure.words,
            )
        raise stage.explain_failure(self.desired, failure)

    # -- the swap ------------------------------------------------------------------------------------------------

    def _swap(self, host_plan: plan.HostPlan, snapshot: HostSnapshot) -> None:
        desired, service = self.desired, snapshot.service
        name = service.name if service else next((s.target for s in host_plan.steps if s.kind == "create_service"), "")
        image = service.executable.rpartition("\\")[2] if service else IMAGE
        if service is not None and host_plan.has("stop"):
            self._recheck(snapshot, service)
        steps = self._commit_steps(host_plan, snapshot, name)
        starts = host_plan.has("start")

        def attempt() -> Failure | None:
            starting = self.control.start_steps(name, desired.log_file) if starts else []
            if service is not None and host_plan.has("stop"):
                self.report(f"restarting service {name}")
                return self.control.stop(
                    name,
                    image,
                    plan.list_own_pids(snapshot),
                    is_stopped=service.state == model.STOPPED,
                    before=steps,
                    after=starting,
                )
            line = [*steps, *starting]
            return self.control.run(line) if line else None

        self._touched = host_plan.has("commit", "create_service", "stop", "start")
        self._committed = host_plan.has("commit")
        failure = self._retry_while_scanned("promote", attempt)
        self._check_commit(failure, name)
        if not starts:
            return
        self.control.check_start(name, failure, desired.log_file)
        self.report(f"waiting until service {name} serves its pipes")
        self._proven_pid = self.control.wait_serving(name, IMAGE, desired.required_pipes, desired.log_file)
        self._touched = False  # proven: whatever fails from here on is bookkeeping, which the next run finishes

    def _recheck(self, snapshot: HostSnapshot, service: Service) -> None:
        """Re-read what the stop depends on."""
        if service.state not in (0, model.STOPPED):
            running = find_running_services(self.node, snapshot.dependents)
            if running:
                raise plan.refuse_running_dependents(service.name, running)
        self._confirm()

    def _check_unchanged(self, snapshot: HostSnapshot) -> None:
        """Another run, or an administrator, may have changed the service while the new release was staged."""
        current = self._observe()
        if _extract_preconditions(current) != _extract_preconditions(snapshot):
            raise ChangedError(_CHANGED)

    def _commit_steps(self, host_plan: plan.HostPlan, snapshot: HostSnapshot, name: str) -> Steps:
        desired, service = self.desired, snapshot.service
        key = locate_parameters(name)
        aside_dir = rf"{model.INSTALL_DIR}\aside-{self._run}"
        start = ["start=", model.START_MODE]
        steps: Steps = []
        for step in host_plan.steps:
            if step.kind == "set_aside":
                steps += self._build_set_aside_steps(aside_dir, service)
            elif step.kind == "promote":
                # The file, not its directory: a directory cannot be renamed while a scanner has anything in it open, and
                # a file can where the scanner shares it. A move onto a file that no process runs replaces it.
                staged = rf"{stage.build_stage_dir(self._run)}\{IMAGE}"
                steps.append(("release", tolerate(builtin("md", desired.release_dir))))
                steps.append(("promote", discard_output(builtin("move", staged, desired.executable, switches="/y"))))
            elif step.kind == "create_service":
                arguments = ["binPath=", desired.command_line, *start, "DisplayName=", model.DISPLAY_NAME]
                steps += self.lock.guard_step("create", discard_output(program("sc", "create", name, *arguments)))
            elif step.kind == "commit" and service is not None:
                steps += [self.lock.guard("previous"), *build_remember_steps(service)]
                if plan.find_manager(snapshot) in ("foreign", desired.take_over) and not service.record.adopted_from:
                    steps.append(("adopted from", set_value(key, "AdoptedFrom", service.command_line)))
                config = program("sc", "config", name, "binPath=", desired.command_line)
                steps += self.lock.guard_step("commit", discard_output(config))
            elif step.kind == "configure":
                steps.append(("configure", discard_output(program("sc", "config", name, *start))))
            elif step.kind == "describe":
                steps.append(("describe", discard_output(program("sc", "description", name, model.DESCRIPTION))))
            elif step.kind == "set_recovery":
                actions = "/".join(f"{action.type}/{action.delay_ms}" for action in model.RECOVERY.actions)
                arguments = ["reset=", str(model.RECOVERY.reset_seconds), "actions=", actions]
                steps.append(("recovery", discard_output(program("sc", "failure", name, *arguments))))
        if service is not None and host_plan.has("stop") and not host_plan.has("commit", "set_aside"):
            steps += self._remember_process(service)
        return steps

    def _remember_process(self, service: Service) -> Steps:
        """Record a process that is to be stopped, so that the next run knows it if this one is cut off."""
        return [self.lock.guard("previous pid"), build_remember_steps(service)[-1]] if service.pid else []

    def _build_set_aside_steps(self, aside_dir: str, service: Service | None) -> Steps:
        """Move a damaged executable out of the way, which Windows allows also while it runs. The service's own process is
        noted as one that has to go, whenever that will be.
        """
        desired = self.desired
        steps: Steps = [
            ("aside", tolerate(builtin("md", aside_dir))),
            ("set aside", tolerate(builtin("move", desired.executable, rf"{aside_dir}\{IMAGE}", switches="/y"))),
        ]
        if service is not None and service.pid and service.executable.lower() == desired.executable.lower():
            steps += build_remember_steps(service)
        return steps

    def _check_commit(self, failure: Failure | None, name: str) -> None:
        if failure is None or (failure.label == "start" and failure.code != 1072):
            return
        if failure.label == "promote":
            self._touched = False
            # cmd.exe's move returns no code, only words.
            raise NodeError(
                "file_in_use",
                f"The verified executable cannot be moved to {self.desired.executable}, also after {sum(self.limits.scans):.0f} s: another "
                "process, such as a virus scan, keeps it open or removed it.",
                remedy=f"Exclude {model.INSTALL_DIR} from real-time scans, or allow the file's SHA-256 there; then run the play again.",
                detail=failure.words,
            )
        subject = f"The step {failure.label!r} for the service {name!r} failed"
        error = find_meaning(failure.code).error(subject, failure.code, failure.words)
        if failure.code in (1060, 1072, 1073):
            # The next read waits until a service that is marked for deletion is gone.
            self._touched = False
            raise ChangedError(
                f"step {failure.label!r} for the service {name!r} ended with code {failure.code}"
            ) from error
        raise error

    # -- absent --------------------------------------------------------------------------------------------------

    def _remove(self, host_plan: plan.HostPlan, snapshot: HostSnapshot) -> None:
        service = snapshot.service
        if service is not None:
            image = service.executable.rpartition("\\")[2]
            if host_plan.has("stop"):
                self._recheck(snapshot, service)
                failure = self.control.stop(
                    service.name,
                    image,
                    plan.list_own_pids(snapshot),
                    is_stopped=service.state == model.STOPPED,
                    before=self._remember_process(service),
                )
                self._check_commit(failure, service.name)
            delete = discard_output(program("sc", "delete", service.name))
            failure = self.control.run(self.lock.guard_step("delete", delete))
            if failure is not None and failure.code not in (1060, 1072):
                self._check_commit(failure, service.name)
        for step in host_plan.steps:
            if step.kind == "remove_files":
                self._remove_files(step.target)
        if host_plan.has("forget_directory"):
            forget = discard_output(program("reg", "delete", model.OWN_KEY, "/f"))
            self._check_commit(self.control.run(self.lock.guard_step("forget", forget)), "csi-proxy")

    def _remove_files(self, path: str) -> None:
        """Remove our directory, and see it gone: ``rd`` leaves open files and reports that only in words."""
        remove = tolerate(builtin("rd", path, switches="/s /q"))
        failure = self.control.run(self.lock.guard_step("remove", remove))
        self._check_commit(failure, "csi-proxy")
        listed = self.node.ask([("there", list_directory_itself(path))]).text("there")
        if is_listed(path, listed):
            raise NodeError(
                "file_in_use",
                f"{path} cannot be removed: something in it is in use. The service is already removed.",
                remedy="Close what uses it (a shell in that directory, a scan), then run the play again.",
            )

    # -- the end -------------------------------------------------------------------------------------------------

    def _finish(self, host_plan: plan.HostPlan, snapshot: HostSnapshot) -> None:
        """Record what was proven, remove what is not kept, release the lock: one line."""
        desired, service = self.desired, snapshot.service
        steps: Steps = []
        if host_plan.has("record"):
            name = next(step.target for step in host_plan.steps if step.kind == "record")
            key = locate_parameters(name)
            pid = self._proven_pid or (service.pid if service else 0)
            steps += [
                self.lock.guard("record"),
                ("release", set_value(key, "Release", desired.version)),
                ("sha256", set_value(key, "Sha256", desired.sha256)),
                ("command line", set_value(key, "CommandLineSha256", model.digest_text(desired.command_line))),
                ("proven pid", set_value(key, "ProvenPid", pid)),
            ]
            if host_plan.has("commit", "stop") or (service and service.record.previous):
                steps += build_forget_steps(key)
        steps += self.tidy_steps(host_plan, snapshot)
        failure = self.control.run([*steps, *self.lock.release_steps()])
        if failure is None or failure.label == "unlock":
            self.lock.held = False
        else:
            self._check_commit(failure, service.name if service else "csi-proxy")

    def tidy_steps(self, host_plan: plan.HostPlan, snapshot: HostSnapshot) -> Steps:
        names = [step.target for step in host_plan.steps if step.kind == "prune"]
        names += [f"stage-{self._run}"] if host_plan.has("promote") else []
        names += [f"aside-{self._run}"] if host_plan.has("set_aside") else []
        steps: Steps = [
            (f"prune {name}", tolerate(builtin("rd", rf"{model.INSTALL_DIR}\{name}", switches="/s /q")))
            for name in names
        ]
        return steps + self.lock.build_leftover_steps(snapshot.lock_leftovers)

    def release(self) -> None:
        """Give back the lock and what only this run used."""
        self._drop_stage(self.lock.release_steps())
        self.lock.held = False

    def _drop_stage(self, following: Steps) -> None:
        own_stage = stage.build_stage_dir(self._run)
        drop = tolerate(builtin("rd", own_stage, switches="/s /q"))
        self.node.chain([("drop stage", drop), *following], timeout=self.limits.line)

    def _outlast_line(self) -> None:
        """The last line may still be at work: let it come to its next guard and end there, before anything is decided."""
        failure = self.node.chain(self.lock.rename_steps(), timeout=self.limits.line)[1]
        self.control.raise_if_lock_lost(failure)
        self.node.clock.sleep(self.limits.takeover)

    def _roll_back(self, error: BaseException, snapshot: HostSnapshot) -> None:
        if isinstance(error, ChangedError) or not self.lock.held:
            if self._staged:
                with contextlib.suppress(ChannelError, NodeError):
                    self._drop_stage([])
            return
        rollback = Rollback(self.control, self._committed, snapshot, self._observe)
        try:
            if self._touched:
                if not isinstance(error, NodeError) or isinstance(error, ChannelError):
                    self._outlast_line()
                rollback.run(error)
            self.release()
        except (ChannelError, NodeError, ChangedError) as later:
            # The node keeps the record of the unproven swap, so the next run finishes either way.
            if isinstance(error, NodeError):
                error.result.setdefault("rolled_back", False)
                error.result["rollback_error"] = str(later)


def _extract_preconditions(snapshot: HostSnapshot) -> tuple[object, ...]:
    service = snapshot.service
    observed = (service.command_line, service.pid, service.state) if service is not None else ()
    return (*observed, snapshot.executable_sha256)
