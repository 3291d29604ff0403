"""Machine code of the live entries: object code for each level of a processor and C, as extension modules.

    python release/machine.py OUT                          # all entries, the levels of x86-64
    python release/machine.py OUT --levels here            # the highest level that this processor runs
    python release/machine.py OUT --levels v3 --only score_linear_ learn_linear_
    python release/machine.py OUT --levels v8              # for aarch64, also across: with aarch64-linux-gnu-gcc
    python release/machine.py OUT --levels v2 --sanitize   # then LD_PRELOAD="$(gcc -print-file-name=libasan.so)"

numba makes LLVM's text of every entry of kernels/entries.py, once, half of it in each of two processes. For each level
the text is optimised and becomes two object files. module.c is the module, and entries.h is made from the declared
signatures: it takes Python's buffers apart, checks them and calls the code without the GIL. Each level is a module of
Python's limited API (3.11 and later) with no other dependency.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import multiprocessing
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

os.environ.pop("NUMBA_DISABLE_JIT", None)
HERE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HERE / "src"))


class Level(NamedTuple):
    """A processor by platform.machine()'s name and by LLVM's."""

    machine: str
    cpu: str

    @property
    def triple(self) -> str:
        return f"{self.machine}-unknown-linux-gnu"


LEVELS = {level: Level("x86_64", f"x86-64-{level}") for level in ("v2", "v3", "v4")}
LEVELS["v8"] = Level("aarch64", "generic")
# What object code may ask the C library for: nothing that rounds.
ALLOWED = {"memcpy", "memset", "memmove", "fmod", "floor", "ceil", "sqrt", "_GLOBAL_OFFSET_TABLE_"}
# What module.c has for code that allocates.
OWN = {"NRT_MemInfo_alloc_aligned", "NRT_MemInfo_call_dtor"}

# Parts of names of entries that take half of the time.
HALF = ("auto", "bvd", "optimist_", "project_", "solve_", "narrow_", "one_pass")

# What a processor of each level has, by Linux's names.
FEATURES = {
    "v2": {"cx16", "popcnt", "sse4_2", "ssse3"},
    "v3": {"abm", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "v4": {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}


class Broken(Exception):
    """Why there is no machine code."""


def compiler(machine: str = "") -> str:
    """The C compiler for a processor, or why there is none."""
    across = machine not in ("", platform.machine())
    named = [f"{machine}-linux-gnu-gcc"] if across else ["gcc", "cc"]
    found = os.environ.get("CC") or next(filter(None, map(shutil.which, named)), None)
    if not found:
        raise Broken(f"no C compiler: install {f'gcc-{machine}-linux-gnu' if across else 'gcc'}, or set CC")
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        raise Broken("no Python.h: install the headers of this Python (python3-dev)")
    return found


def levels_here() -> list[str]:
    """The levels that this processor runs: code that was never run is not built unasked."""
    if platform.machine() == "aarch64":
        return ["v8"]
    told = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text("utf-8"), re.M)
    has = set(told[1].split()) if told else set()
    found = list(itertools.takewhile(lambda level: FEATURES[level] <= has, FEATURES))
    if not found:
        raise Broken("this processor is older than x86-64-v2")
    return found


# ------------------------------------------------------------------------------------------ LLVM's text


def text_of(names: list[str]) -> str:
    """All entries in one module of LLVM's text, each as `entry_NAME`, and their guards as `guard_…`."""
    from driftwise.kernels import entries

    whole, guarded = None, set()
    for number, name in enumerate(names, 1):
        print(f"machine code: {name}, {number} of {len(names)}", flush=True)
        live = entries.LIST[name]
        modules = [_module_of(live.call, entries.declared(name), f"entry_{name}")]
        guard = live.guard
        if guard is not None and guard.__name__ not in guarded:
            guarded.add(guard.__name__)
            modules.append(_module_of(guard, entries.guard_of(name), guard.__name__))
        for module in modules:
            if whole is None:
                whole = module
            else:
                whole.link_in(module)
    assert whole is not None
    return str(whole)


def _module_of(kernel: Any, signature: Any, symbol: str) -> Any:
    """A kernel as LLVM's text, its function under a name of ours."""
    import llvmlite.binding as llvm
    from numba.core.compiler_lock import global_compiler_lock

    from driftwise._internal import jit, numba_text

    made = numba_text.llvm_text(kernel.py_func, False, jit._COMMON | kernel.options)
    made.compile(signature)
    found = made.overloads[signature.args]
    if found.signature.return_type != signature.return_type:
        raise Broken(f"{symbol} returns {found.signature.return_type}, not {signature.return_type} as declared")
    with global_compiler_lock:
        found.library._ensure_finalized()
    module = llvm.parse_assembly(str(found.library._final_module))
    module.get_function(found.fndesc.llvm_func_name).name = symbol
    return module


def _plain(text: str) -> str:
    """Text without the one instruction of x86 that numba's optimiser puts into it, which counts references down and
    tells whether none is left."""
    counted = r"(%\S+) = call i8 @llvm\.x86\.atomic\.sub\.cc\.i64\(ptr (%\S+), i64 1, i32 4\)"
    plain = r"%was = atomicrmw sub ptr \2, i64 1 seq_cst\n  %last = icmp eq i64 %was, 1\n  \1 = zext i1 %last to i8"
    return re.sub(r"declare i8 @llvm\.x86\.atomic\.sub\.cc.*\n", "", re.sub(counted, plain, text))


def _watched(text: str) -> str:
    """Text that asks the address sanitizer before it reads or writes memory through a pointer it computed.

    llvmlite has no pass for this. Variables on the stack have no red zones around them; arrays of Python's have."""
    reads = re.compile(r"^(\s+)\S+ = load (?:volatile )?(.+?), ptr (%[^\s,]+)")
    kinds = r"<[^>]*>|\{[^}]*\}|\[[^\]]*\]|\w+"
    writes = re.compile(rf"^(\s+)store (?:volatile )?({kinds}) .*, ptr (%[^\s,]+)(?:, align|, !|$)")
    made = []
    for number, line in enumerate(text.splitlines()):
        for what, form in (("load", reads), ("store", writes)):
            if found := form.match(line):
                place = f"%watched.{number}"
                made.append(f"{found[1]}{place} = ptrtoint ptr {found[3]} to i64")
                made.append(f"{found[1]}call void @__asan_{what}N(i64 {place}, i64 {_bytes_of(found[2])})")
        made.append(line)
    made += [f"declare void @__asan_{what}N(i64, i64)" for what in ("load", "store")]
    return "\n".join(made) + "\n"


def _bytes_of(kind: str) -> int:
    """The size of a type of LLVM's, without what aligns the fields of a struct."""
    if many := re.fullmatch(r"[<\[](\d+) x (.+)[>\]]", kind):
        return int(many[1]) * _bytes_of(many[2])
    if kind.startswith("{"):
        return sum(_bytes_of(one) for one in re.findall(r"[<\[][^>\]]*[>\]]|\w+", kind))
    return {"double": 8, "float": 4, "ptr": 8}.get(kind) or -(-int(kind[1:]) // 8)


def object_of(text: str, level: str, names: list[str], sanitize: bool = False) -> bytes:
    """The text optimised for a level, as object code."""
    import llvmlite.binding as llvm

    print(f"machine code: {len(names)} functions for {LEVELS[level].cpu}", flush=True)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(LEVELS[level].triple)
    emits = target.create_target_machine(cpu=LEVELS[level].cpu, opt=3, reloc="pic", codemodel="default")
    module = llvm.parse_assembly(_watched(_plain(text)) if sanitize else _plain(text))
    module.triple, module.data_layout = LEVELS[level].triple, str(emits.target_data)
    kept = {f"entry_{name}" for name in names} | {guard for name in names if (guard := guard_of(name))}
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external" if function.name in kept else "internal"
            if function.name in kept:
                function.visibility = "hidden"
    for variable in module.global_variables:
        if not variable.is_declaration and variable.linkage.name not in ("private", "internal"):
            variable.linkage = "internal"
    tuned = llvm.create_pipeline_tuning_options()
    tuned.speed_level, tuned.loop_unrolling, tuned.loop_interleaving = 3, False, False  # as numba_text.Rolled does
    builder = llvm.create_pass_builder(emits, tuned)
    passes = builder.getModulePassManager()
    passes.add_constant_merge_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    asked = {one.name for one in module.functions if one.is_declaration and not one.name.startswith("llvm.")}
    beside = {one for one in asked - ALLOWED - OWN if not (sanitize and one.startswith("__asan_"))}
    if beside:
        raise Broken(f"object code asks for {', '.join(sorted(beside))}")
    return bytes(emits.emit_object(module))


def guard_of(name: str) -> str | None:
    """The name of the function that checks what an entry is handed."""
    from driftwise.kernels import entries

    guard = entries.LIST[name].guard
    return None if guard is None else str(guard.__name__)


# ------------------------------------------------------------------------------------------ C

NAMES = {"int64": "int64_t", "float64": "double", "boolean": "uint8_t", "none": "void *", "bool": "uint8_t"}
READ = {"int64": "PyLong_AsLongLong", "float64": "PyFloat_AsDouble"} | dict.fromkeys(
    ("boolean", "bool"), "PyObject_IsTrue"
)
GIVE = {"int64": "PyLong_FromLongLong({})", "float64": "PyFloat_FromDouble({})", "boolean": "PyBool_FromLong({} & 1)",
        "bool": "PyBool_FromLong({} & 1)", "none": "(Py_INCREF(Py_None), Py_None)"}  # fmt: skip


class Wrapper:
    """The C function of one entry: how arguments are taken, handed on, and what is given back."""

    def __init__(self, name: str, signature: Any) -> None:
        from driftwise.kernels import entries

        self.name, self.kinds, self.taken, self.handed, self.buffers = name, [], [], [], 0
        for place, kind in enumerate(signature.args):
            reads = place in entries.LIST[name].reads
            self._argument(kind, f"args[{place}]", f"{name}, argument {place + 1}", reads)
        self.count, self.result = len(signature.args), signature.return_type

    def _argument(self, kind: Any, given: str, told: str, read: bool) -> None:
        from numba import types

        if isinstance(kind, types.Array):
            c = NAMES[str(kind.dtype)]
            if kind.layout != "C" or not kind.mutable:
                raise Broken(f"{told}: {kind}")
            held, n = f"held[{self.buffers}]", kind.ndim
            demands = f'{n}, {int(c == "int64_t")}, {int(not read)}, "{told}"'
            self.taken.append(f"if (!({held} = take(self, {given}, &rooms[{self.buffers}], {demands}))) goto out;")
            self.taken.append(f"count = {self.buffers + 1};")
            self.buffers += 1
            self.kinds += ["void *", "void *", "int64_t", "int64_t", f"{c} *"] + ["int64_t"] * (2 * n)
            shape = [f"{held}->{field}[{j}]" for field in ("shape", "strides") for j in range(n)]
            self.handed.append(f"0, 0, {held}->len / 8, 8, ({c} *){held}->buf, {', '.join(shape)}")
        elif isinstance(kind, types.BaseTuple):
            self.taken.append(f'if (take_tuple({given}, {len(kind)}, "{told}")) goto out;')
            for place, one in enumerate(kind):
                self._argument(one, f"PyTuple_GetItem({given}, {place})", told, read)
        else:
            number, here = len(self.handed), str(kind)
            self.taken.append(f"{NAMES[here]} x{number};")
            self.taken.append(f"x{number} = ({NAMES[here]}){READ[here]}({given}); if (PyErr_Occurred()) goto out;")
            self.kinds.append(NAMES[here])
            self.handed.append(f"x{number}")

    def _fields(self) -> tuple[list[str], str]:
        """The C types of what is returned, and how it is built."""
        from numba import types

        if not isinstance(self.result, types.BaseTuple):
            return [NAMES[str(self.result)]], GIVE[str(self.result)].format("r.f0")
        found = [str(one) for one in self.result]
        items = ", ".join(GIVE[one].format(f"r.f{place}") for place, one in enumerate(found))
        return [NAMES[one] for one in found], f"give({len(found)}, {items})"

    def text(self) -> str:
        fields, give = self._fields()
        declared = [line for line in self.taken if line.endswith(";") and line.count(" ") == 1 and " x" in line]
        steps = [line for line in self.taken if line not in declared]
        struct = " ".join(f"{kind} f{place};" for place, kind in enumerate(fields))
        lines = [
            f"struct r_{self.name} {{ {struct} }};",
            f"extern int32_t entry_{self.name}(struct r_{self.name} *, void **, {', '.join(self.kinds)});",
            f"static PyObject *call_{self.name}(PyObject *self, PyObject *const *args, Py_ssize_t size)",
            "{",
            "    (void)self;",
            f"    Py_buffer rooms[{max(1, self.buffers)}], *held[{max(1, self.buffers)}];",
            "    int count = 0;",
            "    PyObject *found = 0;",
            *(f"    {line}" for line in declared),
            f"    if (size != {self.count}) {{",
            f'        PyErr_SetString(PyExc_TypeError, "{self.name} takes {self.count} arguments");',
            "        return 0;",
            "    }",
            *(f"    {line}" for line in steps),
            f"    struct r_{self.name} r;",
            "    memset(&r, 0, sizeof r);",
            "    void *slip = 0;",
            *self._guarded(),
            "    PyThreadState *thread = PyEval_SaveThread();",
            f"    int32_t status = entry_{self.name}(&r, &slip, {', '.join(self.handed)});",
            "    PyEval_RestoreThread(thread);",
            f'    if (status > 0 || status == -1) PyErr_SetString(PyExc_MemoryError, "{self.name}: no memory");',
            f"    else found = {give};",
            "out:",
            "    give_back(held, rooms, count);",
            "    return found;",
            "}",
        ]
        return "\n".join(lines)

    def _guarded(self) -> list[str]:
        """Ask the guard, where the entry has one."""
        guard = guard_of(self.name)
        if guard is None:
            return []
        return [
            f"    uint8_t good = 0;\n    if ({guard}(&good, &slip, {', '.join(self.handed)}) || !good) {{",
            f'        PyErr_SetString(PyExc_ValueError, "{self.name}: arrays shorter than their sizes say");',
            "        goto out;\n    }",
        ]

    @property
    def guard(self) -> str:
        """The declaration of its guard, or nothing."""
        guard = guard_of(self.name)
        return f"extern int32_t {guard}(uint8_t *, void **, {', '.join(self.kinds)});" if guard else ""

    @property
    def method(self) -> str:
        return f'    {{"{self.name}", (PyCFunction)(void (*)(void))call_{self.name}, METH_FASTCALL, 0}},'


def source_of(signatures: dict[str, Any]) -> str:
    """What module.c includes: the C functions of all entries, and their places in the table of methods."""
    wrappers = [Wrapper(name, signature) for name, signature in signatures.items()]
    guards = "\n".join(sorted({one.guard for one in wrappers}))
    table = "#define ENTRIES \\\n" + " \\\n".join(one.method for one in wrappers)
    return "\n\n".join([guards, *(one.text() for one in wrappers), table]) + "\n"


# ------------------------------------------------------------------------------------------ all of it


def halves(names: list[str]) -> list[list[str]]:
    """Two parts that take equally long: entries of one family share most of what is compiled for them."""
    first = [name for name in names if any(part in name for part in HALF)]
    return [half for half in (first, [name for name in names if name not in first]) if half]


def objects_of(names: list[str], levels: list[str], sources: str) -> list[tuple[bytes, ...]]:
    """The two pieces of object code of each level, each from a process of its own: what a process compiled before
    changes names, and with them bytes."""
    parts = halves(names)
    with multiprocessing.get_context("spawn").Pool(len(parts), maxtasksperchild=1) as pool:
        found = pool.starmap(kept_objects, [(part, levels, sources) for part in parts], chunksize=1)
    return list(zip(*found, strict=True))


def kept_objects(names: list[str], levels: list[str], sources: str) -> list[bytes]:
    """Object code for each level. DRIFTWISE_KEPT names a folder in which it and its text are kept for another wheel
    from the same sources by the same compiler."""
    folder = os.environ.get("DRIFTWISE_KEPT")
    if not folder:
        text = text_of(names)
        return [object_of(text, level, names) for level in levels]
    versions = [importlib.metadata.version(one) for one in ("numba", "llvmlite")]
    kept = Path(folder, "-".join([sources, names[0], str(len(names)), *versions]))
    kept.mkdir(parents=True, exist_ok=True)
    missing = [level for level in levels if not (kept / level).exists()]
    if missing and not (kept / "text").exists():
        (kept / "text").write_text(text_of(names), encoding="utf-8")
    for level in missing:
        (kept / level).write_bytes(object_of((kept / "text").read_text("utf-8"), level, names))
    return [(kept / level).read_bytes() for level in levels]


def build(out: Path, levels: list[str], only: list[str] | None = None, sanitize: bool = False) -> list[Path]:
    """The modules of these levels, in a folder."""
    from driftwise._internal.sources import COMPILED, source_hash
    from driftwise.kernels import entries

    cc, names, sources = compiler(LEVELS[levels[0]].machine), only or list(entries.LIST), source_hash(*COMPILED)
    signatures = {name: entries.declared(name) for name in names}
    if only or sanitize:
        text = text_of(names)
        objects = [(object_of(text, level, names, sanitize),) for level in levels]
    else:
        objects = objects_of(names, levels, sources)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    for level, code in zip(levels, objects, strict=True):
        told = {"LEVEL": level, "CPU": f'"{LEVELS[level].cpu}"', "SOURCES": f'"{sources}"'}
        made.append(linked(cc, source_of(signatures), told, code, out / f"{level}.abi3.so", sanitize))
    return made


def linked(
    cc: str, entries: str, told: dict[str, str], code: tuple[bytes, ...], target: Path, sanitize: bool
) -> Path:
    """Object code and C as one module."""
    flags = ["-O1", "-g", "-fsanitize=address"] if sanitize else ["-O2", "-s"]
    with tempfile.TemporaryDirectory() as folder:
        for place, one in enumerate(code):
            Path(folder, f"code{place}.o").write_bytes(one)
        Path(folder, "entries.h").write_text(entries, encoding="utf-8")
        subprocess.run(
            [cc, *flags, "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Werror", "-Wno-unused-function",
             "-Wl,-Bsymbolic", "-Wl,-z,noexecstack", "-Wl,--build-id=none",
             *(f"-D{name}={value}" for name, value in told.items()), "-I.", f"-I{sysconfig.get_paths()['include']}",
             "-o", str(target), str(HERE / "release" / "module.c"), *(f"code{place}.o" for place in range(len(code))),
             "-lm"],
            check=True, cwd=folder,
        )  # fmt: skip
    return target


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--levels", nargs="+", default=list(FEATURES), choices=[*LEVELS, "here", "all"])
    parser.add_argument("--only", nargs="+", metavar="ENTRY")
    parser.add_argument("--sanitize", action="store_true", help="with the address sanitizer, in C and object code")
    options = parser.parse_args()
    try:
        runs = {"here": levels_here()[-1:], "all": levels_here()} if options.levels[0] in ("here", "all") else {}
        levels = runs.get(options.levels[0], options.levels)
        made = build(options.out.resolve(), levels, options.only, options.sanitize)
    except Broken as slip:
        sys.exit(str(slip))
    for one in made:
        print(f"{one}: {one.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
