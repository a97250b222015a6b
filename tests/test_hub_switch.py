"""EXPLORER_HUB: whoever runs the app can forbid models of the hub."""

from __future__ import annotations

import pytest

import explorer.catalogue
from explorer.models import ModelError, hub_allowed, load


@pytest.mark.parametrize("value", ["off", "OFF", " no ", "0", "false"])
def test_switched_off_no_hub_id_is_opened_nor_asked_for(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPLORER_HUB", value)
    monkeypatch.setattr(explorer.catalogue, "_from_hub", lambda name: pytest.fail(f"asked: {name}"))
    assert not hub_allowed()
    for name in ("openai-community/gpt2", "gpt2"):
        with pytest.raises(ModelError, match=r"switched off here \(EXPLORER_HUB\)"):
            load(name, "cpu")


def test_switched_off_the_bundled_model_still_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPLORER_HUB", "off")
    assert load("minilm", "cpu").n_layers == 6


@pytest.mark.parametrize("value", [None, "", "on", "yes", "1"])
def test_otherwise_the_hub_is_asked(value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if value is None:
        monkeypatch.delenv("EXPLORER_HUB", raising=False)
    else:
        monkeypatch.setenv("EXPLORER_HUB", value)

    def asked(name: str) -> None:
        raise ModelError(f"asked for {name}")

    monkeypatch.setattr(explorer.catalogue, "_from_hub", asked)
    assert hub_allowed()
    with pytest.raises(ModelError, match="asked for someone/something"):
        load("someone/something", "cpu")
