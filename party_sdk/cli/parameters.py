"""Build click commands from annotated functions.

    @command(session)
    def extend(
        coordinator: "Coordinator",
        session: SessionName,
        *,
        days: Annotated[float, option("Additional days; .5 is twelve hours.", high=366)],
    ) -> Output: ...

The type and default of a parameter become those of an option. A parameter whose type is
a dataclass provides one option per field. A parameter annotated with a string (because
its type is not imported here) gets the object that the group opens. Decision 82 explains
why this is neither typer nor plain click.
"""

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import click

from clustering_protocols.terms.captions import Caption, Group, find_captions
from party_sdk.cli.terminal.output import Output, print_output

_NO_DEFAULT: Final = inspect.Parameter.empty


@dataclass(frozen=True)
class ParameterSpec:
    """The kind, flag and further attributes of a command-line parameter."""

    kind: type[click.Parameter]
    flag: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class CaptionOptions:
    """A parameter that receives the options of several field groups as a mapping."""

    groups: tuple[Group, ...]


def argument(**attributes: Any) -> ParameterSpec:
    """Declare an argument; ``attributes`` are passed to :class:`click.Argument`."""
    return ParameterSpec(click.Argument, "", attributes)


def option(text: str, flag: str = "", **attributes: Any) -> ParameterSpec:
    """Declare an option.

    text: the help text.
    flag: the flag on the command line; by default it is made from the parameter's name.
    attributes: those of :class:`click.Option`, and the bounds ``low`` and ``high``.
    """
    return ParameterSpec(click.Option, flag, {"help": text, **attributes})


def option_for_caption(caption: Caption) -> ParameterSpec:
    """Declare the option for a request field, as its caption describes it."""
    choices = {}
    if caption.choices and caption.metavar is None:
        choices["type"] = click.Choice(list(caption.choices))
    return option(
        caption.help,
        caption.flag,
        metavar=caption.metavar,
        low=caption.least,
        high=caption.most,
        **choices,
    )


def command(
    group: click.Group | None = None, name: str | None = None, common: str = ""
) -> Callable[[Callable[..., Output | None]], click.Command]:
    """Turn a function into a command; if it returns an :class:`Output`, add ``--json``.

    common: names of the options that --help shows; --help-all shows the others too.
    """

    def make_command(function: Callable[..., Output | None]) -> click.Command:
        signature = inspect.signature(function)
        parameters = signature.parameters.values()
        declared = list(chain.from_iterable(map(_declare_parameters, parameters)))
        if signature.return_annotation is Output:
            text = "Print JSON on standard output."
            declared.append(
                click.Option(["--json", "as_json"], is_flag=True, help=text)
            )

        @click.pass_context
        @functools.wraps(function)
        def run(context: click.Context, /, **values: Any) -> None:
            arguments = {
                p.name: _argument_value(p, values, context) for p in parameters
            }
            output = function(**arguments)
            if output is not None:
                print_output(output, as_json=values["as_json"])

        options: dict[str, Any] = {"common": common} if common else {}
        new_command = (LongCommand if common else click.Command)(
            name or function.__name__.replace("_", "-"),
            callback=run,
            params=declared,
            help=function.__doc__,
            **options,
        )
        if group is not None:
            group.add_command(new_command)
        return new_command

    return make_command


def _declare_parameters(parameter: inspect.Parameter) -> Iterator[click.Parameter]:
    hint = parameter.annotation
    if is_dataclass(hint):
        for field in fields(hint):
            default = _NO_DEFAULT if field.default is MISSING else field.default
            yield _build_parameter(field.name, field.type, default)
    elif get_origin(hint) is Annotated and isinstance(
        get_args(hint)[1], CaptionOptions
    ):
        for group in get_args(hint)[1].groups:
            for caption in find_captions(group):
                yield _build_parameter(
                    "", Annotated[str | None, option_for_caption(caption)], None
                )
    elif get_origin(hint) is Annotated:
        yield _build_parameter(parameter.name, hint, parameter.default)


def _build_parameter(name: str, hint: Any, default: Any) -> click.Parameter:
    kind, declared = get_args(hint)
    attributes = {**_describe_type(kind), **declared.attributes}
    default = attributes.pop("default", default)
    low, high = attributes.pop("low", None), attributes.pop("high", None)
    if low is not None or high is not None:
        ranged = click.FloatRange if attributes.get("type") is float else click.IntRange
        attributes["type"] = ranged(low, high)
    if default is _NO_DEFAULT:
        attributes["required"] = True
    elif declared.kind is click.Option:
        attributes.setdefault("show_default", bool(default) and default != Path())
        attributes["default"] = default
    else:
        attributes["required"] = False
    if declared.kind is click.Argument:
        if attributes.pop("multiple", False):
            attributes["nargs"] = -1
        return click.Argument([name], **attributes)
    flag = declared.flag or f"--{name.replace('_', '-')}"
    return click.Option([flag, *([name] if name else [])], **attributes)


def _describe_type(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is types.UnionType:
        kind = next(member for member in get_args(kind) if member is not types.NoneType)
    if get_origin(kind) is tuple:
        return {**_describe_type(get_args(kind)[0]), "multiple": True}
    if get_origin(kind) is Literal:
        return {"type": click.Choice(get_args(kind))}
    if kind is bool:
        return {"is_flag": True}
    if kind is Path:
        return {"type": click.Path(path_type=Path)}
    return {"type": kind} if kind in {int, float, str} else {}


def _argument_value(
    parameter: inspect.Parameter, values: Mapping[str, Any], context: click.Context
) -> Any:
    hint = parameter.annotation
    if is_dataclass(hint) and isinstance(hint, type):
        return hint(**{field.name: values[field.name] for field in fields(hint)})
    if hint is click.Context:
        return context
    if isinstance(hint, str):
        return context.obj()
    if parameter.name == "as_json":
        return values["as_json"]
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], CaptionOptions):
        return values
    return values[parameter.name]


class LongCommand(click.Command):
    """A command with many options: --help lists common ones, and --help-all lists all."""

    def __init__(self, *args: Any, common: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self._shown = frozenset(f"--{name}" for name in common.split())

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with --help-all inserted before --help."""
        *parameters, help_option = super().get_params(ctx)
        help_all = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=self._show_full_help,
            help="Show every option, and exit.",
        )
        return [*parameters, help_all, help_option]

    def _show_full_help(
        self, context: click.Context, parameter: click.Parameter, value: object
    ) -> None:
        if value and not context.resilient_parsing:
            context.meta[parameter.human_readable_name] = True
            click.echo(context.get_help(), color=context.color)
            context.exit()

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the help of the common options, or of all options after --help-all."""
        shows_all = "help_all" in ctx.meta
        records = [
            record
            for parameter in self.get_params(ctx)
            if (record := parameter.get_help_record(ctx)) is not None
            and (shows_all or self._shown.intersection(parameter.opts))
        ]
        with formatter.section("Options"):
            formatter.write_dl(records)
