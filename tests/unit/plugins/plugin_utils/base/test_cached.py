# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Results of methods: each worked out once for its object and its arguments, and gone with the object. One object for equal values."""

from __future__ import annotations

import gc
import weakref

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.cached import cached_method, share


class Counting:
    """Counts the calls that no earlier result answers."""

    def __init__(self, start: int) -> None:
        self.start, self.calls = start, 0

    @cached_method
    def add(self, number: int, factor: int = 1) -> int:
        """The sum of start and number, times factor."""
        self.calls += 1
        return (self.start + number) * factor


def test_a_result_is_worked_out_once_for_its_arguments() -> None:
    counting = Counting(5)
    assert [counting.add(1), counting.add(2), counting.add(1), counting.add(1, factor=3)] == [6, 7, 6, 18]
    assert counting.calls == 3


def test_each_object_has_results_of_its_own() -> None:
    assert [Counting(1).add(1), Counting(2).add(1)] == [2, 3]


class Doubling(Counting):
    @cached_method
    def add(self, number: int, factor: int = 1) -> int:
        return 2 * super().add(number, factor)


def test_a_method_and_the_one_that_it_overrides_have_results_of_their_own() -> None:
    doubling = Doubling(5)
    assert [doubling.add(1, 1), Counting.add(doubling, 1, 1), doubling.add(1, 1)] == [12, 6, 12]
    assert doubling.calls == 1


def test_results_go_with_their_object_without_the_collector() -> None:
    gc.disable()
    try:
        counting = Counting(1)
        counting.add(1)
        reference = weakref.ref(counting)
        del counting
        assert reference() is None
    finally:
        gc.enable()


def test_equal_values_become_one_object() -> None:
    values = [tuple("ab") for _number in range(2)]
    assert values[0] is not values[1]
    assert share(values[0]) is share(values[1])
