"""The class of every command: its help, and the work that begins before its modules are
imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from .names import check_command
from .talk import talk

_Function = Callable[..., Any]

_GROUPS = {
    "Input": ("directed", "src", "dst", "weight", "duplicates", "loops"),
    "Output": ("output", "no_output", "overwrite", "as_json"),
    "Resources": ("memory_limit", "threads", "device", "device_memory_limit", "workers"),
    "Clusters": ("scheduler", "scheduler_file", "timeout"),
    "Interrupted runs": ("checkpoint", "scratch", "restart"),
    "Temporary stores": ("partitions", "layout", "grid", "threshold", "order"),
    "Messages": ("quiet", "log_format", "heartbeat", "debug"),
}
"""Options that many commands share. The options of a command itself stand before them."""

_HIDDEN = "Clusters", "Interrupted runs", "Temporary stores", "Messages"
"""Groups that only ``--help-all`` shows, of a command with many options."""

_MANY = 16

_OWN, _HELP = "Options", "Help"


class DeviceOption(click.Option):
    """``--device``. by_estimate: whether auto is decided once the size of the graph is known."""

    def __init__(self, *names: Any, by_estimate: bool, **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.by_estimate = by_estimate


class Command(click.Command):
    """A command that refuses an option that is given twice, where click would silently take the
    last one. A GPU, or local workers, begin to start while modules are imported.

    own_groups: those of shared options that stand with the command's own.
    """

    own_groups: tuple[str, ...] = ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for param in self.params:
            once = isinstance(param, click.Option) and not param.multiple
            if once and given.count(param) > 1:
                raise click.UsageError(f"{param.opts[-1]} is given twice: give it once", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        from ..kernels.gpu.driver import begin_driver

        given, device = ctx.params, self._asked_device(ctx)
        _tell_threads(given)
        if given.get("workers"):
            from ..pipeline.run.fork_server import fork_server

            devices = given.get("device", "cpu") != "cpu" and os.path.exists("/proc/driver/nvidia")
            with fork_server(devices):
                if devices:
                    begin_driver(None)
                return super().invoke(ctx)
        if device != "cpu" and not (given.get("scheduler") or given.get("scheduler_file")):
            begin_driver(int(device.partition(":")[2] or 0))  # as check_choice takes it
        return super().invoke(ctx)

    def _asked_device(self, ctx: click.Context) -> str:
        """Return the device by name, or the command's default; cpu where the command has no device,
        or decides later.
        """
        asked = ctx.params.get("device", "cpu")
        option = next((param for param in self.params if isinstance(param, DeviceOption)), None)
        return "cpu" if asked == "auto" and option and option.by_estimate else asked

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        params = super().get_params(ctx)
        return [*params, _HELP_ALL] if self._hides() else params

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group: those of the command first."""
        groups: dict[str, list[tuple[str, str]]] = {_OWN: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(self._group_of(param), []).append(record)
        hides = self._hides() and not ctx.meta.get(_ALL)
        hidden: list[str] = []
        for title in (_OWN, *_GROUPS, _HELP):
            if hides and title in _HIDDEN:
                hidden += [words.partition(" ")[0] for words, _ in groups.get(title, ())]
            elif groups.get(title):
                with formatter.section(title):
                    formatter.write_dl(groups[title])
        if hidden:
            formatter.write_paragraph()
            formatter.write_text(f"--help-all explains {', '.join(hidden)}, too.")

    def _group_of(self, param: click.Parameter) -> str:
        if {"--help", "--help-all"} & {*param.opts}:
            return _HELP
        shared = (title for title, names in _GROUPS.items() if param.name in names)
        group = next(shared, _OWN)
        return _OWN if group in self.own_groups else group

    def _hides(self) -> bool:
        return len(self.params) > _MANY


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


_ALL = "delegraph.help_all"
_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Explain all options, and exit.",
)


def full_help(ctx: click.Context) -> str:
    """Return the help of a command with all its options."""
    ctx.meta[_ALL] = True
    return ctx.get_help()


class Group(click.Group):
    """A group of commands of the class ``Command``."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        check_command(self, ctx, args[0])
        return super().resolve_command(ctx, args)


def command(*own_groups: str) -> Callable[[_Function], click.Command]:
    """Make a function a command. own_groups: those of shared options that are the command's own."""

    def decorate(function: _Function) -> click.Command:
        made = click.command(cls=Command)(function)
        made.own_groups = own_groups
        return made

    return decorate


def _tell_threads(given: dict[str, Any]) -> None:
    """Say so where fewer threads are used than the option names."""
    asked = given.get("threads")
    if asked is None or asked <= 1:
        return
    from ..kernels.base.threads import available_threads, useful_threads

    if (used := useful_threads(asked)) < asked:
        talk(
            given.get("quiet", False),
            f"--threads {asked:,}: {used:,} threads are used; more do not help on "
            f"{available_threads():,} cores",
        )
