"""The promises of the repository itself: safe serving, pinned requirements, no private paths."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts.browser import page_paths

ROOT = Path(__file__).resolve().parent.parent
CONFIG: dict[str, Any] = tomllib.loads((ROOT / ".streamlit/config.toml").read_text("utf-8"))

PRIVATE = re.compile(
    r"/(?:work|root|home|Users)/\w"  # a folder of one machine
    r"|pypi\.org|pythonhosted\.org|npmjs\.(?:com|org)|conda\.anaconda\.org|download\.pytorch\.org"
)


def tracked() -> list[Path]:
    """Text files that are, or would be, in the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.split("\0") if name]
    return [
        path
        for path in paths
        if path.is_file() and path.suffix not in {".png", ".ico", ".safetensors"}
    ]


@pytest.mark.parametrize(
    ("section", "name", "value"),
    [
        ("server", "address", "127.0.0.1"),
        ("server", "allowedHosts", ["localhost", "127.0.0.1"]),
        ("server", "enableXsrfProtection", True),
        ("server", "fileWatcherType", "none"),
        ("server", "maxUploadSize", 5),
        ("server", "maxMessageSize", 50),
        ("browser", "gatherUsageStats", False),
        ("client", "showErrorDetails", "none"),
        ("client", "showErrorLinks", False),
        ("client", "showSidebarNavigation", False),
        ("runner", "postScriptGC", False),
    ],
)
def test_the_app_is_served_to_this_machine_only_and_says_little(
    section: str, name: str, value: object
) -> None:
    assert CONFIG[section][name] == value


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_can_be_read(theme: str) -> None:
    """4.5:1 for text, also for captions, which Streamlit draws at 60 %; 3:1 for the accent."""
    colors = CONFIG["theme"][theme]
    for ground in (colors["backgroundColor"], colors["sidebar"]["backgroundColor"]):
        caption = mixed(colors["textColor"], ground, 0.6)
        assert contrast(caption, rgb(ground)) >= 4.5
        assert contrast(rgb(colors["linkColor"]), rgb(ground)) >= 4.5
        assert contrast(rgb(colors["primaryColor"]), rgb(ground)) >= 4.5
    assert contrast(rgb(colors["primaryColor"]), (255.0, 255.0, 255.0)) >= 3  # a tick in a box
    for line in colors["chartCategoricalColors"]:
        assert contrast(rgb(line), rgb(colors["backgroundColor"])) >= 4.5


def test_the_contrast_of_black_on_white_is_21() -> None:
    assert contrast(rgb("#000000"), rgb("#ffffff")) == pytest.approx(21)


Rgb = tuple[float, float, float]


def rgb(color: str) -> Rgb:
    return (int(color[1:3], 16) * 1.0, int(color[3:5], 16) * 1.0, int(color[5:7], 16) * 1.0)


def mixed(front: str, back: str, share: float) -> Rgb:
    red, green, blue = (
        share * f + (1 - share) * b for f, b in zip(rgb(front), rgb(back), strict=True)
    )
    return (red, green, blue)


def contrast(first: Rgb, second: Rgb) -> float:
    """WCAG's contrast ratio, from 1 to 21."""

    def luminance(color: Rgb) -> float:
        parts = [c / 255 for c in color]
        red, green, blue = (
            p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_every_requirement_is_pinned_and_says_why(name: str) -> None:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith(("#", "-r "))]
    assert wanted
    for line in wanted:
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+  # \S.{8,}", line), line


def test_no_file_names_a_folder_of_one_machine_or_a_registry() -> None:
    found = []
    for path in tracked():
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            found += [f"{path.relative_to(ROOT)}: {hit}" for hit in PRIVATE.findall(text)]
    assert not found


@pytest.mark.parametrize("text", ["/work" + "/main", "https://pypi" + ".org/simple"])
def test_a_private_path_or_registry_would_be_found(text: str) -> None:
    assert PRIVATE.search(f"see {text} there")


def test_there_is_a_home_page() -> None:
    assert "app.py" in [path.name for path in page_paths()]


@pytest.mark.parametrize("path", page_paths(), ids=lambda path: path.stem)
def test_the_readme_names_every_page(path: Path) -> None:
    assert re.search(rf"\b{path.stem}\b", (ROOT / "README.md").read_text("utf-8"))


def test_contributing_stays_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text("utf-8").splitlines()) < 45
