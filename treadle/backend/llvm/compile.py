"""From the text of a module to object code, and from object code to addresses, through llvmlite.

The pipeline is short because the text needs little: inline the operations' functions, keep thread
scratch in registers, tidy the blocks. The time goes to code generation, which grows with the lines.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from treadle import extras, host

CODEGEN_LEVEL = 1  # 0 compiles 2.7 times faster and runs up to 8 times slower; 2 buys nothing
PASSES = ("always_inliner", "sroa", "simplify_cfg")


class Compiler:
    """LLVM for the processor that this process runs on.

    cpu, features: as LLVM names them. key: all that changes object code beside the text.
    """

    def __init__(self) -> None:
        self.llvm: Any = extras.load("llvmlite.binding")
        self.llvm.initialize_native_target()
        self.llvm.initialize_native_asmprinter()
        self.cpu: str = self.llvm.get_host_cpu_name()
        self.features = usable(self.llvm.get_host_cpu_features().flatten())
        target = self.llvm.Target.from_triple(self.llvm.get_process_triple())
        self.machine = target.create_target_machine(
            cpu=self.cpu,
            features=self.features,
            opt=CODEGEN_LEVEL,
            reloc="pic",
            codemodel="default",
        )
        self.triple: str = self.machine.triple
        self.layout = str(self.machine.target_data)
        versions = (self.llvm.llvm_version_info, extras.load("llvmlite").__version__)
        machine = (self.triple, self.cpu, self.features, self.layout)
        self.key = repr((*versions, *machine, PASSES, CODEGEN_LEVEL))
        # Never disposed of: threads may be inside its code until the process ends.
        self._linker = self.llvm.create_lljit_compiler(self.machine)
        self._libraries = 0

    def compile(self, text: str) -> bytes:
        """The object code of a module. RuntimeError with LLVM's words if the text is not one."""
        llvm = self.llvm
        module = llvm.parse_assembly(text)
        module.triple = self.triple
        module.data_layout = self.layout
        module.verify()
        options = llvm.create_pipeline_tuning_options(CODEGEN_LEVEL)
        builder = llvm.create_pass_builder(self.machine, options)
        passes = llvm.create_new_module_pass_manager()  # one runs once
        for name in PASSES:
            getattr(passes, f"add_{name}_pass")()
        passes.run(module, builder)
        code: bytes = self.machine.emit_object(module)
        return code

    def load(self, code: bytes) -> Library:
        """Object code in memory, linked with the symbols of this process."""
        self._libraries += 1
        name = f"treadle{self._libraries}"
        library = self.llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
        return Library(self._linker, name, library.link(self._linker, name))

    def assembly(self, text: str) -> str:
        """The machine code of a module as text, to read."""
        module = self.llvm.parse_assembly(text)
        module.triple = self.triple
        return str(self.machine.emit_assembly(module))


def usable(features: str) -> str:
    """LLVM's list of a processor's features without those that this process may not use."""
    if "+amx-tile" in features.split(",") and not host.ask_for_tiles():
        return features.replace("+amx-", "-amx-")
    return features


class Library:
    """Functions in memory. They stay there as long as this object lives."""

    def __init__(self, linker: Any, name: str, tracker: Any) -> None:
        self._linker = linker
        self._name = name
        self._trackers = [tracker]

    def address(self, name: str) -> int:
        """The address of an external function. KeyError if there is none of that name."""
        try:
            found = self._linker.lookup(self._name, name)
        except RuntimeError as error:
            raise KeyError(f"the library has no function {name!r}: {error}") from None
        self._trackers.append(found)
        return int(found[name])


@cache
def compiler() -> Compiler:
    """The compiler of this process, made when first asked for: llvmlite takes long to import."""
    return Compiler()
