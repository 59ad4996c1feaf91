"""The lock file and the constraints: all packages, the same versions, a hash for each file."""

import re
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("export", "formats", "hub", "serve")
# Packages of builds of torch for GPUs. setuptools: torch needs it on some versions of Python only.
OF_TORCH = re.compile(r"cuda-|nvidia-|triton$|torch$")


def constraints(root: Path) -> dict[str, str]:
    lines = (root / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def locked(root: Path) -> Iterator[tuple[Requirement, list[str]]]:
    """Each requirement of the lock file with its hashes."""
    text = (root / ".ci" / "lock.txt").read_text(encoding="utf-8")
    for entry in re.split(r"(?<!\\)\n", text.strip()):
        first, *hashes = [part.strip() for part in entry.split("\\\n")]
        yield Requirement(first), hashes


def needed(root: Path, *extras: str) -> set[str]:
    """The packages that nmt needs on this system with these extras, and those that they need, as
    far as they are installed.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [
        *project["dependencies"],
        *(text for extra in extras for text in project["optional-dependencies"][extra]),
    ]
    found: dict[str, set[str]] = {}
    todo = [(Requirement(text), set[str]()) for text in texts]
    while todo:
        requirement, active = todo.pop()
        name = canonicalize_name(requirement.name)
        wanted = requirement.marker is None or any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *active)
        )
        if wanted and not (name in found and requirement.extras <= found[name]):
            found.setdefault(name, set()).update(requirement.extras)
            with suppress(PackageNotFoundError):
                todo += [(Requirement(text), requirement.extras) for text in requires(name) or ()]
    return found.keys() - {"nmt"}


def applies(marker: Marker | None) -> bool:
    return marker is None or marker.evaluate(
        {"sys_platform": "linux", "platform_machine": "x86_64", "os_name": "posix"}
    )


def test_the_constraints_name_every_package_that_the_tests_need(root: Path) -> None:
    found = needed(root, "dev", *EXTRAS)
    assert {"torch", "sacremoses", "joblib", "pyarrow", "pytest", "pluggy"} <= found
    assert {name for name in found - constraints(root).keys() if not OF_TORCH.match(name)} == set()


def test_the_lock_has_the_versions_of_the_constraints(root: Path) -> None:
    versions = constraints(root)
    for requirement, _ in locked(root):
        name, (specifier,) = canonicalize_name(requirement.name), requirement.specifier
        assert (specifier.operator, specifier.version) == (
            "==",
            versions.get(name, specifier.version),
        ), name
        assert name in versions or not applies(requirement.marker), (
            f"{name}: run `make lock`, or add it to the constraints"
        )


def test_the_lock_has_all_packages_but_torch(root: Path) -> None:
    found = needed(root, *EXTRAS)
    names = {canonicalize_name(requirement.name) for requirement, _ in locked(root)}
    assert {name for name in found - names if not OF_TORCH.match(name)} == set()
    assert [name for name in names if OF_TORCH.match(name)] == []


def test_each_locked_package_has_hashes_and_no_address(root: Path) -> None:
    for requirement, hashes in locked(root):
        assert requirement.url is None
        assert hashes, requirement.name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), (
            requirement.name
        )
