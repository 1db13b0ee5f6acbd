# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What others wrote into a cluster is never run as a template on the controller."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.foreign import mark_foreign


def used(value: Any) -> Any:
    """The value as a play gets it through a variable."""
    templar = Templar(loader=DataLoader(), variables={"it": mark_foreign({"x": [value]})})
    try:
        from ansible.template import trust_as_template
    except ImportError:
        return templar.template("{{ it.x[0] }}")
    return templar.template(trust_as_template("{{ it.x[0] }}"))


@pytest.mark.parametrize(
    "text",
    [
        "{{ 1 + 1 }}",
        "{% if true %}x{% endif %}",
        "{# gone #}",
        "#jinja2:variable_start_string:'[', variable_end_string:']'\n[ 1 + 1 ]",
        "win-1",
        "169.254.7.7 (link-local), Hostname win-3",
        "",
    ],
)
def test_text_stays_as_it_was_written(text: str) -> None:
    assert used(text) == text


@pytest.mark.parametrize("value", [5, True, None, 1.5])
def test_a_value_that_is_no_text_stays_unchanged(value: Any) -> None:
    assert mark_foreign(value) is value


def test_no_control_character_acts_where_a_variable_is_printed() -> None:
    assert used("\x1b[2Jwin-1") == "\U000f001b[2Jwin-1"
