"""A section of the configuration, and the keys that extras add to one."""

from collections.abc import Callable
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from nmt.plugins import extras, import_object

SectionT = TypeVar("SectionT", bound="Section")
KeyT = TypeVar("KeyT")


class Section(BaseModel):
    """A part of the configuration: frozen; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def with_extras(name: str) -> Callable[[type[SectionT]], type[SectionT]]:
    """Decorate the section under the key `name`: it gets the keys that extras add to it."""

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
    """A configuration as dictionaries, without the keys of extras that have their defaults: a run
    that uses no extra can be read without them.
    """
    kept = dict(values)
    for extra in extras().values():
        for name, place in extra.keys.items():
            defaults = import_object(place)().model_dump(mode="json")
            kept[name] = {
                key: value
                for key, value in kept[name].items()
                if key not in defaults or value != defaults[key]
            }
    return kept


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
