"""The one place that imports late: optional libraries, plugins, what a warm start does not need."""

from __future__ import annotations

import importlib
from types import ModuleType

# library -> the extra of pyproject.toml that installs it
EXTRAS = {
    "llvmlite.binding": "",
    "safetensors": "safetensors",
    "safetensors.numpy": "safetensors",
    "tqdm": "demo",
    "PIL.Image": "demo",
    "PIL.ImageDraw": "demo",
}


def load(module: str) -> ModuleType:
    """Import `module`. ImportError that names what to install if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if module.startswith("treadle."):
            raise
        extra = EXTRAS.get(module)
        package = "treadle" if not extra else f"treadle[{extra}]"
        raise ImportError(
            f"this needs {module.split('.')[0]}, which is not installed: pip install '{package}'"
        ) from error
