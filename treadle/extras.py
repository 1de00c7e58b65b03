"""The one place that imports late: optional libraries, plugins, what a warm start does not need."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

# library -> the extra of pyproject.toml that installs it
EXTRAS = {"llvmlite": "", "safetensors": "safetensors", "tqdm": "demo", "PIL": "demo"}


def load(module: str) -> ModuleType:
    """Import `module`. ImportError that names what to install if it, or a library that it needs,
    is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = (error.name or module).split(".")[0]
        if library not in EXTRAS:
            raise
        extra = EXTRAS[library]
        package = "treadle" if not extra else f"treadle[{extra}]"
        raise ImportError(
            f"this needs {library}, which is not installed: pip install '{package}'", name=library
        ) from error


def is_installed(library: str) -> bool:
    """Whether a library can be imported. Does not import it."""
    try:
        return importlib.util.find_spec(library) is not None
    except ImportError:
        return False
