"""Config: the settings of a run, from CaffeOnSpark's flags and the prototxts they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

from hearth.caffeonspark.flags import (
    ALL,
    SETTINGS,
    FlagError,
    check_value,
    dict_to_arguments,
    parse_flags,
)
from hearth.files.uri import local_path
from hearth.spark.executors import executor_count
from hearth.spark.session import as_session

_PHASES = ("TRAIN", "TEST")

# CaffeOnSpark's names that are not the camelCase form of Hearth's names.
_ALIASES = {
    "transform_thread_per_device": "transform_threads",
    "onNaN": "on_nan",
    "imageCaptionDFDir": "image_caption_df_dir",
    "embeddingDFDir": "embedding_df_dir",
    "solverParameter": "solver",
    "netParam": "net",
}
# Fields that the prototxts or the program determine, not a setting.
_DERIVED = (
    "spark",
    "texts",
    "solver",
    "net",
    "solver_text",
    "net_text",
    "net_file",
    "train_data_layer_id",
    "test_data_layer_id",
)


@dataclass(frozen=True)
class Texts:
    """The prototxts of a run, and their paths."""

    solver_path: str
    solver: str
    net_path: str
    net: str


class Config:
    """The settings of one run.

    Each attribute can be read and set by its CaffeOnSpark name (`modelPath`) and by its Python name
    (`model_path`). Raises AttributeError for an unknown name, FlagError for an invalid value.
    Read-only: `solver` and `net` (the parsed prototxts as dicts), `train_data_layer_id`,
    `test_data_layer_id`.
    """

    def __init__(self, sc: Any = None, args: Mapping[str, Any] | Sequence[str] | None = None):
        """Parses `args` (a dict of flags, or a command line) and reads the prototxts of `conf`.

        Raises:
            FlagError: a flag is invalid, a file that it names does not exist, or a prototxt cannot
                be parsed (file:line:column: reason).
        """
        if isinstance(args, Mapping):
            args = dict_to_arguments(args)
        values = dict(vars(parse_flags(args or [])))
        features = values.pop("features")
        proto_file = values.pop("proto_file")
        if args is None:
            values["label"] = "label"
        fields = self.__dict__
        fields.update({setting.name: setting.default for setting in SETTINGS})
        fields.update(values)
        fields["spark"] = sc
        fields["texts"] = None  # set by of_texts()
        fields["is_feature"] = bool(features)
        fields["features"] = [name.strip() for name in features.split(",") if name.strip()]
        self.proto_file = proto_file

    @classmethod
    def of_texts(cls, sc: Any, args: Mapping[str, Any], texts: Texts) -> Config:
        """A Config of saved prototxts, regardless of later changes to the files.

        Raises FlagError like the constructor, except about files.
        """
        conf = cls(sc, args)
        conf.__dict__.update(_parsed(texts), proto_file=texts.solver_path, texts=texts)
        return conf

    def __getattr__(self, name: str) -> Any:
        known = _python_name(name)
        if known not in self.__dict__:
            raise AttributeError(f"Config has no setting '{name}'")
        return getattr(self, known)

    def __setattr__(self, name: str, value: Any) -> None:
        known = _python_name(name)
        if known == "proto_file":
            self.__dict__.update(_read_prototxts(value))
        elif known in ("solver", "net", "net_file") or known.endswith("data_layer_id"):
            raise AttributeError(f"'{name}' is read-only: set protoFile instead")
        elif known not in self.__dict__:
            raise AttributeError(f"Config has no setting '{name}'")
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if known == "max_bad_records" and is_number:  # a count, or a fraction of the rows
            value = str(value)
        check_value(known, value)
        self.__dict__[known] = value

    def __repr__(self) -> str:
        shown = (f"{k}={v!r}" for k, v in self.__dict__.items() if k not in _DERIVED)
        return f"Config({', '.join(shown)})"

    @property
    def changed_settings(self) -> dict[str, Any]:
        """The settings whose values differ from their defaults, by Python name."""
        usual = vars(Config())
        return {
            name: value
            for name, value in vars(self).items()
            if name not in _DERIVED and value != usual[name]
        }

    @property
    def cluster_size(self) -> int:
        """The number of executors that train together; default: all of the application's."""
        given = self.__dict__["cluster_size"]
        if given != ALL:
            return given
        return executor_count(as_session(self.spark)) if self.spark is not None else 1

    @property
    def lmdb_partitions(self) -> int:
        """The flag's value; default: the number of executors that train together."""
        return self.__dict__["lmdb_partitions"] or self.cluster_size

    @property
    def blobs(self) -> list[str]:
        """The blobs that features() extracts: those in `features`, and `label` if not among
        them."""
        extra = [self.label] if self.label and self.label not in self.features else []
        return self.features + extra

    @property
    def interleaves_validation(self) -> bool:
        """Whether the solver requests a validation during training."""
        iterations = self.solver.get("test_iter") or [0]
        every, last = self.solver.get("test_interval", 0), self.solver.get("max_iter", 0)
        return 0 < every <= last and iterations[0] > 0

    @property
    def test_state(self) -> dict[str, Any]:
        """The solver's first test_state (`level`, `stage`), for the net that tests and extracts."""
        return _state_of(self.solver, "TEST")

    def refresh(self) -> None:
        """Reads the prototxts again if they have changed, because notebooks rewrite them."""
        if self.proto_file and self.texts is None:
            now = _read_prototxts(self.proto_file)
            if any(now[name] != self.__dict__[name] for name in ("solver_text", "net_text")):
                self.__dict__.update(now)

    def data_layer_id(self, is_training: bool) -> int:
        """The index of the TRAIN or TEST net's data layer that Spark feeds; -1 if there is none."""
        return self.train_data_layer_id if is_training else self.test_data_layer_id

    def data_layer(self, is_training: bool) -> dict[str, Any]:
        """The TRAIN or TEST net's data layer that Spark feeds, as a dict."""
        index = self.data_layer_id(is_training)
        if index < 0:
            phase = "TRAIN" if is_training else "TEST"
            net = self.net_file or "the net"
            raise FlagError(f"{net} has no layer with source_class for phase {phase}")
        return self.net["layer"][index]


def _python_name(name: str) -> str:
    if name in _ALIASES:
        return _ALIASES[name]
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def read_texts(solver_file: str) -> Texts:
    """The current prototxts of a solver and its net. Raises FlagError."""
    solver_path, solver_text = _read_local("-conf", solver_file)
    net_file = _parse(solver_text, solver_path, "SolverParameter").get("net")
    if not net_file:
        raise FlagError(f"{solver_file} has no `net:`, which is required here")
    return Texts(solver_path, solver_text, *_read_local("net:", net_file, solver_path))


def _read_prototxts(solver_file: str) -> dict[str, Any]:
    if solver_file:
        return _parsed(read_texts(solver_file))
    fields: dict[str, Any] = {"solver": {}, "net": {}, "net_file": ""}
    fields.update(solver_text="", net_text="", train_data_layer_id=-1, test_data_layer_id=-1)
    return fields


def _parsed(texts: Texts) -> dict[str, Any]:
    net = _parse(texts.net, texts.net_path, "NetParameter")
    solver = _parse(texts.solver, texts.solver_path, "SolverParameter")
    layers = {phase: _find_data_layer(net, phase, _state_of(solver, phase)) for phase in _PHASES}
    return {
        "solver": solver,
        "solver_text": texts.solver,
        "net": net,
        "net_text": texts.net,
        "net_file": texts.net_path,
        **{f"{phase.lower()}_data_layer_id": layer for phase, layer in layers.items()},
    }


def _parse(text: str, path: str, message: str) -> dict[str, Any]:
    from hearth.native._core import parse_prototxt

    try:
        return parse_prototxt(text, path, message)
    except ValueError as error:
        raise FlagError(str(error)) from error


def _read_local(flag: str, name: str, base: str = "") -> tuple[str, str]:
    path = local_path(name, base)
    if path is None:
        raise FlagError(f"{flag} {name}: prototxts are read on the driver: pass a local path")
    if not Path(path).is_file():
        raise FlagError(f"{flag} {name}: there is no such file (looked for {path})")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise FlagError(f"{flag} {name}: {path} cannot be read as a prototxt: {reason}") from error
    if not text.strip():
        raise FlagError(f"{flag} {name}: {path} is empty")
    return path, text


def _state_of(solver: dict[str, Any], phase: str) -> dict[str, Any]:
    """The level and stages of the solver's net for a phase; TEST uses the first test_state."""
    if phase == "TRAIN":
        return solver.get("train_state", {})
    return next(iter(solver.get("test_state", [])), {})


def _find_data_layer(net: dict[str, Any], phase: str, state: dict[str, Any]) -> int:
    """The index of the first layer with a source_class whose rules name this phase. If there is
    none, the first such layer that applies to any phase; otherwise -1.
    """
    state = {**state, "phase": phase}
    for_any = -1
    for index, layer in enumerate(net.get("layer", [])):
        includes, excludes = layer.get("include", []), layer.get("exclude", [])
        out = any(_meets(rule, state) for rule in excludes)
        if not layer.get("source_class") or out:
            continue
        met = [rule for rule in includes if _meets(rule, state)]
        if any("phase" in rule for rule in met):
            return index
        if (met or not includes) and for_any < 0:
            for_any = index
    return for_any


def _meets(rule: dict[str, Any], state: dict[str, Any]) -> bool:
    """Whether a net's state matches a layer's rule."""
    level, stages = state.get("level", 0), set(state.get("stage", []))
    return (
        rule.get("phase", state["phase"]) == state["phase"]
        and rule.get("min_level", level) <= level <= rule.get("max_level", level)
        and stages.issuperset(rule.get("stage", []))
        and stages.isdisjoint(rule.get("not_stage", []))
    )
