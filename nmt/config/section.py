"""A section of the configuration, and the keys that extras add to one."""

from collections.abc import Callable
from functools import reduce
from operator import getitem
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from nmt.plugins import extras, import_object

SectionT = TypeVar("SectionT", bound="Section")
KeyT = TypeVar("KeyT")


class Section(BaseModel):
    """A part of the configuration: frozen; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def with_extras(name: str) -> Callable[[type[SectionT]], type[SectionT]]:
    """Decorate the section under the dotted key `name`: it gets the keys that extras add to it."""

    def add_keys(section: type[SectionT]) -> type[SectionT]:
        fields: dict[str, Any] = {
            key: (field.annotation, field)
            for extra in extras().values()
            if name in extra.keys
            for key, field in import_object(extra.keys[name]).model_fields.items()
        }
        return (
            create_model(
                section.__name__,
                __base__=section,
                __doc__=section.__doc__,
                __module__=section.__module__,
                **fields,
            )
            if fields
            else section
        )

    return add_keys


def key_of(section: Section, name: str, kind: type[KeyT]) -> KeyT:
    """The value, of type `kind`, of a key that an extra has added to a section."""
    value = getattr(section, name)
    assert isinstance(value, kind)
    return value


def without_unused_extras(values: dict[str, Any]) -> dict[str, Any]:
    """Take the keys of extras that have their defaults out of a configuration as dictionaries, and
    return it: a run that uses no extra can be read without them.
    """
    for extra in extras().values():
        for name, place in extra.keys.items():
            section = reduce(getitem, name.split("."), values)
            for key, default in import_object(place)().model_dump(mode="json").items():
                if section[key] == default:
                    del section[key]
    return values


def section_of(parent: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The section under `key` of `parent`; None if `key` is unknown or holds a plain value."""
    return next(filter(_is_section, _members(parent, key)), None)


def named_sections_of(parent: type[BaseModel], key: str) -> type[BaseModel] | None:
    """The section under each name in the mapping under `key`; None if `key` holds no mapping of
    sections.
    """
    mappings = (
        get_args(annotation)
        for annotation in _members(parent, key)
        if get_origin(annotation) is dict
    )
    return next((values for _, values in mappings if _is_section(values)), None)


def _members(parent: type[BaseModel], key: str) -> tuple[Any, ...]:
    field = parent.model_fields.get(key)
    annotation: Any = None if field is None else field.annotation
    return annotation, *get_args(annotation)


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
