"""The text of `nmt --help` and of the help of each command. Without torch, so that it appears at once."""

from typing import Any

import typer.core

OTHER = "Other commands"


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help names each argument as its usage line does, without the name of its type."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections "Arguments" and "Options"."""
        records: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and parameter.param_type_name == "argument":
                records["Arguments"].append((parameter.metavar or record[0], record[1]))
            elif record is not None:
                records["Options"].append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class HelpfulGroup(typer.core.TyperGroup):
    """Commands whose help is grouped by their `rich_help_panel`; nothing needs rich, which is slow to import."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group of commands, in the order of their first commands."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        width = max(map(len, commands))
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in commands.items():
            if command is not None and not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                heading = panel if isinstance(panel, str) else OTHER
                help_text = command.get_short_help_str(formatter.width - 6 - width)
                groups.setdefault(heading, []).append((f"{name:<{width}}", help_text))
        for heading, rows in groups.items():
            with formatter.section(heading):
                formatter.write_dl(rows)
