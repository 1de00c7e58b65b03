"""From the text of a C module to a shared object, by the system's compiler, and to addresses."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

# No contraction: a multiplication and an addition are fused only where the program says so. Signed
# integers wrap; memory may be read as any type.
FLAGS = (
    "-O2", "-march=native", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-fno-math-errno", "-w", "-shared", "-fPIC",
)  # fmt: skip


class Compiler:
    """A C compiler of this machine. command: how it is called; key: all that changes its output
    beside the text; macros: what it defines for this processor.

    RuntimeError if there is none, or it does not work.
    """

    def __init__(self) -> None:
        self.command = find_command()
        probe = self._run("-march=native", "-dM", "-E", "-v", "-x", "c", "-", text="")
        if probe.returncode != 0:
            raise RuntimeError(f"the C compiler {self.command[0]} does not work: {probe.stderr}")
        lines = (line.split(None, 2) for line in probe.stdout.splitlines())
        self.macros = {words[1]: words[-1] for words in lines if len(words) > 1}
        self.key = repr((self.command, FLAGS, probe.stderr, sorted(self.macros.items())))

    def compile(self, text: str) -> bytes:
        """The bytes of a shared object. RuntimeError with the compiler's words if it refuses."""
        with tempfile.TemporaryDirectory(prefix="treadle") as directory:
            out = Path(directory) / "module.so"
            done = self._run(*FLAGS, "-x", "c", "-", "-o", str(out), "-lm", text=text)
            if done.returncode != 0:
                raise RuntimeError(
                    f"the C compiler {self.command[0]} refused code that treadle wrote. Please "
                    "report this with what follows; meanwhile DEVICE=CPU or DEVICE=INTERP runs the "
                    f"same program.\n{done.stderr}"
                )
            return out.read_bytes()

    def _run(self, *arguments: str, text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.command, *arguments], input=text, capture_output=True, text=True, check=False
        )


class Library:
    """Functions of a shared object in memory, for as long as the process lives."""

    def __init__(self, code: bytes) -> None:
        # a loaded file can be removed everywhere but on Windows, where it outlives the process
        with tempfile.TemporaryDirectory(prefix="treadle", ignore_cleanup_errors=True) as directory:
            path = Path(directory) / "module.so"
            path.write_bytes(code)
            self._code = ctypes.CDLL(str(path))

    def address(self, name: str) -> int:
        """The address of an external function. KeyError if there is none of that name."""
        try:
            function = getattr(self._code, name)
        except AttributeError:
            raise KeyError(f"the library has no function {name!r}") from None
        return ctypes.cast(function, ctypes.c_void_p).value or 0


def find_command() -> list[str]:
    """The first C compiler of this machine, as a command. RuntimeError if there is none."""
    for name in ("gcc", "clang"):
        found = shutil.which(name)
        if found:
            return [found]
    zig = shutil.which("zig")
    if zig:
        return [zig, "cc"]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise RuntimeError(
        "the device C needs a C compiler and finds none: install gcc or clang, or run "
        "`pip install ziglang`; the device CPU needs none"
    )


@cache
def compiler() -> Compiler:
    """The compiler of this process, looked for when first asked for."""
    return Compiler()
