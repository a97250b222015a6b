"""What the pages remember of a reader's choices: after an early end, and on another page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from explorer.ui import controls, lesson
from tests.pages import driven


def test_a_control_that_a_run_did_not_come_to_has_its_value_again() -> None:
    app = driven.opened("masks", mask="causal", query="3")
    app.text_input(key="text").set_value("").run()
    assert app.error and "query" not in app.session_state  # the browser has forgotten it as well
    app.text_input(key="text").set_value("the cat sat on the mat").run()
    assert app.selectbox(key="query").value == 3
    assert app.selectbox(key="mask").value == "causal"


def walked(app: AppTest, page: str) -> AppTest:
    """On to another page by the menu, which leaves the address behind."""
    app.query_params.clear()
    app.switch_page(f"pages/{page}.py")
    return driven.looked_at(app.run())


def test_a_default_that_nobody_chose_stays_on_its_page() -> None:
    app = driven.visited("heads")
    assert app.text_area(key="text").value == controls.DEFAULT_TEXT
    assert walked(app, "step_by_step").text_input(key="text").value == lesson.TEXT
    assert walked(app, "heads").text_area(key="text").value == controls.DEFAULT_TEXT


def test_a_choice_goes_along_and_stays_where_it_is_another_pages_default() -> None:
    app = driven.visited("step_by_step")
    app.text_input(key="text").set_value(controls.DEFAULT_TEXT).run()
    assert walked(app, "heads").text_area(key="text").value == controls.DEFAULT_TEXT
    assert walked(app, "many_heads").text_input(key="text").value == controls.DEFAULT_TEXT
    app.text_input(key="text").set_value("my own words").run()
    assert walked(app, "heads").text_area(key="text").value == "my own words"


def test_what_a_link_asked_in_vain_is_said_where_no_closed_menu_hides_it() -> None:
    app = driven.opened("step_by_step", n_heads="7")  # the control stands in a menu
    words = "The link asks for n\\_heads “7”\\."
    assert [each.value[: len(words)] for each in app.warning] == [words]
    menu = next(each for each in app.get("popover"))
    assert not menu.warning
    app.selectbox(key="n_heads").set_value(4).run()
    assert not app.warning
