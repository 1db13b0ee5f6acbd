# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stories of conversions that are killed, and continued or rolled back."""

from __future__ import annotations

import random
import threading
from pathlib import Path

from day import DAY
from integration.convert import CLAIMS, Story, convert, in_process, plant, random_instant, remove, runs, shape
from integration.convert_parts import (
    conversion,
    converted,
    killed_at,
    killed_everywhere,
    uninterrupted,
    until_converted,
    untouched,
)
from lab.handle import Lab, eventually

# Before a landing a conversion is killed at one of so many writes, at other ones each day.
SHARE = 4


def kill_at_random(lab: Lab, story: Story, seed: int, count: int) -> int:
    """Kill runs of one conversion after another at random instants until so many were killed, or one was not."""
    dice = random.Random(seed)
    for killed in range(count):
        reported, decide = random_instant(dice)
        end = in_process(conversion(lab, story), decide)
        untouched(lab, story)
        if end.result is not None:
            assert end.result["status"] in ("converted", "native"), (seed, reported, end.result)
            return killed
    return count


def random_kills(lab: Lab, seed: int, count: int) -> None:
    killed = 0
    while killed < count:
        number = seed + killed
        story = Story(f"random-{number}")
        plant(lab, story)
        killed += kill_at_random(lab, story, number, count - killed)
        until_converted(lab, story)
        remove(lab, story)
    print(f"{killed} kills at random instants, seed {seed}: 0 lost")


def api_kills(lab: Lab, seed: int, count: int) -> None:
    """Kill the API server just before a request of a conversion, again and again; it is back half a second later."""
    dice = random.Random(seed)
    story = Story("no-api")
    plant(lab, story)
    events = sorted(dice.sample(range(20, 250), count))
    met: list[int] = []
    starts: list[threading.Timer] = []

    def meet(number: int, _what: str, when: str) -> None:
        if when == "before" and len(met) < count and number == events[len(met)]:
            met.append(number)
            for earlier in starts:
                earlier.join()
            lab.call("stop", name="apiserver")
            starts.append(threading.Timer(0.5, lambda: lab.call("start", name="apiserver")))
            starts[-1].start()

    # Controllers reconnect to a restarted API server after their own timeout, of up to a minute; and a pod whose
    # volume kube-controller-manager did not know yet when it saw the pod is processed again after some minutes.
    patience = 600
    result = convert(conversion(lab, story, step=patience), meet)
    for start in starts:
        start.join()
    assert result["status"] == "converted", (seed, events, result["msg"])
    assert met == events
    runs(lab, story, patience)
    untouched(lab, story)
    remove(lab, story, patience)
    print(f"{count} kills of the API server, seed {seed}, before requests {events}: 0 lost")


def killed_before_and_after_writes_it_goes_on(lab: Lab, _folder: Path, share: int = SHARE) -> None:
    expected = uninterrupted(lab, Story("calm"))
    story = Story("killed")
    plant(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    deaths = killed_everywhere(lab, story, reads=False, share=share)
    converted(lab, story, uid)
    assert shape(lab, story) == expected
    print(f"{deaths} kills before and after writes, one of {share} with KUBEWIN_DAY={DAY}: 0 lost")
    assert deaths > 50 // share
    remove(lab, story)


def undone_the_volume_is_what_it_was(lab: Lab, _folder: Path, step: str = "canary") -> None:
    story = Story(f"back-{step.replace('_', '-')}")
    plant(lab, story)
    before = shape(lab, story)
    uid = lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"]
    killed_at(lab, story, step)
    result = convert(conversion(lab, story, roll_back=True))
    assert result["status"] == "rolled_back", result
    assert lab.api.get(f"{CLAIMS}/{story.claim}")["metadata"]["uid"] == uid
    # The attacher's finalizer and the event of the last attachment come when they come.
    eventually(lambda: shape(lab, story) == before, "everything as it was")
    untouched(lab, story)
    remove(lab, story)
