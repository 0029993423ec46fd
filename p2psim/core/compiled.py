"""How kernels are compiled and cached.

Numba notices a change of the file that holds a kernel, but not of other files whose functions and constants were
compiled into it: after an upgrade it could go on running what is no longer written. So the cache lies in a directory
that is named after all sources that are compiled.

With every function that a kernel calls numba would compile a way in for Python and another for C, in a sixth of all the
time of compiling. What numba knows of a function is put together at its first call: few of those imported are called.
"""

import contextlib
import gc
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache, partial, update_wrapper
from typing import Any, Literal

from p2psim.core.files import cache_directory, prepared_cache
from p2psim.core.process import interrupted_afterwards


class Kernel:
    """A function that is compiled with a way in for Python when Python calls it, and without when kernels do.

    Parameters
    ----------
    function : callable
    options : dict
        As of `numba.njit`.
    keep : callable
        Has numba keep the machine code of a function in a folder of a name.
    """

    def __init__(
        self, function: Callable[..., Any], options: dict[str, Any], keep: Callable[[Any, str], None]
    ):
        update_wrapper(self, function)
        self.py_func, self._keep = function, keep
        #: Where numba looks whether to paste a function into those that call it.
        self.targetoptions = {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **options}

    def __call__(self, *arguments: Any, **keys: Any) -> Any:
        """Compile the function for these arguments, unless that is done, and call it."""
        return self.of_python(*arguments, **keys)

    def __reduce__(self) -> str:
        """Be pickled by name, as functions are."""
        return self.py_func.__qualname__

    @property
    def signatures(self) -> list[Any]:
        """What it has been compiled for, to be called by Python."""
        return list(self.of_python.signatures)

    @property
    def _numba_type_(self) -> Any:
        """What kernels see in place of the function."""
        return self.of_kernels._type

    @cached_property
    def of_python(self) -> Any:
        """The function as Python calls it."""
        return self._dispatcher("")

    @cached_property
    def of_kernels(self) -> Any:
        """The function as kernels call it."""
        return self._dispatcher("of-kernels", no_cpython_wrapper=True)

    def _dispatcher(self, folder: str, **more: bool) -> Any:
        from numba.core.registry import CPUDispatcher

        dispatcher = CPUDispatcher(
            self.py_func, targetoptions={**self.targetoptions, **more}, pipeline_class=_pipeline()
        )
        self._keep(dispatcher, folder)
        return dispatcher


#: What calls of functions are, by the functions, the types of their arguments, and the options they are compiled with.
_CALLS: dict[Any, Any] = {}


@contextlib.contextmanager
def _remembering() -> Iterator[None]:
    """Have numba look up what a call of a function with arguments of some types is once, and not for each call.

    To infer types it goes through all statements until nothing changes, and tries ten and more definitions of each
    operator every time: that took a fifth of all the time of compiling.
    """
    from numba.core import types
    from numba.core.targetconfig import ConfigStack

    if "get_call_type" in vars(types.Function):
        yield
        return
    functions: Any = types.Function
    stack: Any = ConfigStack
    texts: dict[int, Any] = {}

    def get_call_type(function: Any, context: Any, arguments: Any, keys: Any) -> Any:
        options = stack.top_or_none()
        # Kept, so that no other gets its number.
        _, text = texts.get(id(options)) or texts.setdefault(id(options), (options, repr(options)))
        key = function, tuple(arguments), tuple(keys.items()), text
        if key not in _CALLS:
            signature = look_up(function, context, arguments, keys)
            _CALLS[key] = signature, function._impl_keys[signature.args]
        # The same with other options may have put another implementation in the place where numba looks.
        signature, function._impl_keys[signature.args] = _CALLS[key]
        return signature

    look_up = functions.get_call_type
    functions.get_call_type = get_call_type
    try:
        yield
    finally:
        del functions.get_call_type


@contextlib.contextmanager
def _tidying() -> Iterator[None]:
    """Have numba find where variables live when it asks for that, not ten times, after each pass that may change it."""
    from numba.core import postproc, transforms

    processors: Any = postproc.PostProcessor
    lifetimes: Any = postproc.VariableLifetime
    canonical: Any = transforms.canonicalize_cfg
    whole = processors.run

    def run(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = processor.func_ir
        if emit_dels or code.is_generator:
            whole(processor, emit_dels, extend_lifetimes)
        else:
            code.blocks = canonical(code.blocks)
            code.variable_lifetime, code.generator_info = lifetimes(code.blocks), None

    processors.run = run
    try:
        yield
    finally:
        processors.run = whole


@lru_cache(maxsize=1)
def _pipeline() -> Any:
    """How numba compiles kernels: as all functions, but without doing twice what is the same each time."""
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.untyped_passes import InlineInlinables

    #: What is pasted, by function, as it is read before types are known.
    read: dict[Any, Any] = {}

    @register_pass(mutates_CFG=True, analysis_only=False)  # type: ignore[no-untyped-call]
    class Inlining(InlineInlinables):
        _name = "p2psim_inlining"

        def _do_work(self, *arguments: Any) -> Any:
            worker = arguments[-1]
            anew = type(worker).run_untyped_passes

            def once(function: Any) -> Any:
                if function not in read:
                    read[function] = anew(worker, function)
                worker.flags.enable_ssa = False  # as numba leaves it
                return read[function]  # of which a copy is pasted

            worker.run_untyped_passes = once
            return super()._do_work(*arguments)  # type: ignore[no-untyped-call]

    class Pipeline(CompilerBase):
        def compile_extra(self, function: Any) -> Any:
            state = self.state
            if state.flags.no_cpython_wrapper:
                state.library = _parts()[0](state.targetctx.codegen(), function.__qualname__)
                state.library.is_counted = state.flags.nrt
            with _remembering(), _tidying():
                return super().compile_extra(function)  # type: ignore[no-untyped-call]

        def define_pipelines(self) -> list[Any]:
            manager: Any = DefaultPassBuilder.define_nopython_pipeline(self.state)  # type: ignore[no-untyped-call]
            manager.passes = [
                (Inlining if kind is InlineInlinables else kind, text) for kind, text in manager.passes
            ]
            manager.finalize()
            return [manager]

    return Pipeline


#: Environments of functions that only kernels call, by the names of their places.
_ENVIRONMENTS: dict[str, tuple[Any, Any]] = {}


@lru_cache(maxsize=1)
def _parts() -> tuple[Any, Any]:
    """What holds a function that only kernels call, and the cache of such: a part of each kernel, never run alone.

    Numba would optimise each and make machine code of it, with all that it calls: half of all the time of compiling.
    """
    from llvmlite.binding import parse_bitcode
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.codegen import JITCodeLibrary, RuntimeLinker
    from numba.core.compiler import compile_result

    class Part(JITCodeLibrary):
        is_counted = False
        codegen = property(lambda part: part)

        def set_env(self, name: str, environment: Any) -> None:
            """Keep it for the first kernel that has a place for it."""
            _ENVIRONMENTS[name] = self._codegen, environment

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()  # type: ignore[no-untyped-call]
            return 0

        def _optimize_final_module(self) -> None:
            """Leave out what numba finds of counted references in each function; loops are taken apart in kernels."""
            if self.is_counted:
                few = {"opt": 0, "loop_vectorize": False, "slp_vectorize": False, "cost": "cheap"}
                manager, builder = self._codegen._module_pass_manager(**few)  # type: ignore[no-untyped-call]
                manager.run(self._final_module, builder)

        def _finalize_final_module(self) -> None:
            """Be ready; where functions call each other in a circle, numba needs the address of their machine code."""
            names = [value.name for value in self._final_module.global_variables]
            if any(name.startswith(RuntimeLinker.PREFIX) for name in names):
                super()._finalize_final_module()  # type: ignore[no-untyped-call]
            self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
            self._finalized = True

    class Kept(CompileResultCacheImpl):
        def reduce(self, compiled: Any) -> Any:
            compiled.fndesc.typemap = compiled.fndesc.calltypes = None
            code = compiled.library._get_module_for_linking().as_bitcode()
            return code, compiled.fndesc, compiled.environment, compiled.signature, compiled.reload_init

        def rebuild(self, context: Any, kept: Any) -> Any:
            code, described, environment, signature, begins = kept
            for begin in begins:
                begin()
            part: Any = Part(context.codegen(), described.qualname)  # type: ignore[no-untyped-call]
            part._final_module = parse_bitcode(code)
            part._finalize_final_module()
            return compile_result(  # type: ignore[no-untyped-call]
                typing_context=context.typing_context, target_context=context, library=part, fndesc=described,
                entry_point=context.get_executable(part, described, environment), environment=environment,
                signature=signature, objectmode=False, lifted=(), reload_init=begins,
            )  # fmt: skip

    return Part, type("Cache", (FunctionCache,), {"_impl_class": Kept})


def njit(
    inline: Literal["never", "always"] = "never",
    forceinline: bool = False,
    allocates: bool = True,
    error_model: Literal["python", "numpy"] = "python",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: compile without Python objects when first called, and keep the machine code.

    Parameters
    ----------
    inline : {"never", "always"}
        Whether to paste the function into those that call it, before types are known.
    forceinline : bool
        Whether to paste its machine code into those that call it: with types known, code for what is None is left out.
    allocates : bool
        Whether it makes arrays, or returns some. Where not, holders of its arguments are not counted: a count takes as
        long as twenty additions each time that an array is taken out of a tuple.
    error_model : {"python", "numpy"}
        Whether a division by zero is an error, or infinite: a loop that may fail is not done four numbers at a time.
    """
    _hold_interrupts()
    options = {"inline": inline, "forceinline": forceinline, "_nrt": allocates, "error_model": error_model}

    def compile_later(function: Callable[..., Any]) -> Callable[..., Any]:
        return Kernel(function, options, _keep)

    return compile_later


def load_numba() -> None:
    """Load what the first kernel of a process would load: a third of a second, of which many may share one."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def unwritten(array: Any) -> Any:
    """An array that cannot be written to, for a kernel that does not: of those that can it would be compiled anew."""
    view = array.view()
    view.flags.writeable = False
    return view


#: Signature of a function of a record's score and label, and of parameters.
SCALAR = "float64(float64, float64, float64[::1])"


def called_by_address(*functions: tuple[Callable[..., Any], str]) -> tuple[Any, ...]:
    """Functions and their signatures as kernels take them; see `first_class`."""
    import numba

    # Numba calls the feature experimental; how kernels call it is fixed by a test.
    warnings.filterwarnings("ignore", category=numba.NumbaExperimentalFeatureWarning)
    return tuple(first_class(function, signature) for function, signature in functions)


@lru_cache(maxsize=256)
def first_class(function: Callable[..., Any], signature: str = SCALAR) -> Any:
    """Compile a function of a fixed signature to be called by its address; keeps the machine code.

    Its type is one for all functions of the signature, so that a kernel that takes it is compiled once.
    """
    import numba

    _hold_interrupts()
    compiled = partial(numba.cfunc, signature)
    with _cached_here():
        try:
            return _named_apart(compiled(cache=True)(function))
        except RuntimeError:  # it is of no file
            return compiled()(function)


@lru_cache(maxsize=1)
def _hold_interrupts() -> None:
    """Have interrupts wait while numba compiles: it calls Python from where an error of Python is lost."""
    from numba.core import event

    class Holder(event.Listener):
        """Holds from the outermost of the blocks in which the main thread compiles."""

        open = 0

        def on_start(self, event: object) -> None:
            if threading.current_thread() is threading.main_thread():
                if not self.open:
                    self.held = interrupted_afterwards()
                    self.held.__enter__()
                    self.collects = gc.isenabled()
                    gc.disable()
                self.open += 1

        def on_end(self, event: object) -> None:
            for name, (codegen, environment) in [*_ENVIRONMENTS.items()] if self.open < 2 else ():
                if codegen._engine.is_symbol_defined(name):
                    codegen.set_env(name, environment)
                    _ENVIRONMENTS.pop(name, None)
            if threading.current_thread() is threading.main_thread():
                self.open -= 1
                if not self.open:
                    if self.collects:
                        gc.enable()
                    self.held.__exit__(None, None, None)

    event.register("numba:compiler_lock", Holder())  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def _cached_here(folder: str = "") -> Iterator[None]:
    """Have numba keep what is decorated in this block in `cache_directory`, or a folder of it."""
    import numba

    config: Any = numba.config
    # Numba asks for the directory at this moment and never again; other code keeps its own.
    before = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", "")
    # Numba would import what a file .numba_config.yaml in the current folder names here.
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = str(prepared_cache(cache_directory()) / folder), ""
    try:
        yield
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before


def _keep(kernel: Any, folder: str) -> None:
    """Have numba keep the machine code of a function."""
    from numba.core.caching import FunctionCache

    with _cached_here(folder):
        kernel._cache = (_parts()[1] if folder else FunctionCache)(kernel.py_func)
    _named_apart(kernel)


def _named_apart(function: Any) -> Any:
    """Have what this process compiles of a function kept in files that no other process writes.

    Numba takes the first number that is free in the index. Two processes that compile a function for different types
    at one time take the same, and a later process would be given machine code for other types.
    """
    kept = function._cache._cache_file
    kept._data_name_pattern = kept._data_name_pattern.replace("{number", f"{uuid.uuid4().hex[:12]}.{{number")
    return function
