"""The wheel and the sdist work without the repository; the lock file and the constraints have all
packages, in the same versions, with a hash for each file.
"""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("documents", "formats", "serve", "tensorboard")
LINUX = {"sys_platform": "linux", "platform_machine": "x86_64", "os_name": "posix"}
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
    todo = [(Requirement(text), set[str]()) for text in texts if not text.startswith("nmt[")]
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
    return {*found}


def test_the_constraints_name_every_package_that_the_tests_need(root: Path) -> None:
    found = needed(root, "dev", *EXTRAS)
    assert {"torch", "pyarrow", "pytest", "pluggy"} <= found
    assert {name for name in found - constraints(root).keys() if not OF_TORCH.match(name)} == set()


def test_the_lock_has_all_packages_but_torch_with_their_hashes(root: Path) -> None:
    versions = constraints(root)
    names = set()
    for requirement, hashes in locked(root):
        name, (specifier,) = canonicalize_name(requirement.name), requirement.specifier
        names.add(name)
        version = versions.get(name, specifier.version)
        assert (specifier.operator, specifier.version) == ("==", version), name
        marker = requirement.marker
        assert name in versions or not (marker is None or marker.evaluate(LINUX)), (
            f"{name}: run `make lock`, or add it to the constraints"
        )
        assert requirement.url is None
        assert hashes, name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), name
    assert {each for each in needed(root, *EXTRAS) - names if not OF_TORCH.match(each)} == set()
    assert [each for each in names if OF_TORCH.match(each)] == []


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """What the command prints. It sees no repository: neither PYTHONPATH nor the current folder."""
    variables = {
        key: value for key, value in os.environ.items() if key != "PYTHONPATH"
    } | environment
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def build(source: Path, output: Path, *targets: str) -> None:
    targets = tuple(word for target in targets for word in ("-t", target))
    run(sys.executable, "-m", "hatchling", "build", "-d", output, *targets, cwd=source)


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    folder = tmp_path_factory.mktemp("built")
    build(root, folder, "wheel", "sdist")
    return folder


@pytest.mark.slow
def test_the_sdist_gives_the_same_wheel_which_holds_the_package_and_the_starter_project(
    built: Path, root: Path, tmp_path: Path
) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    # tarfile warns without `filter`, which Python 3.11.0 to 3.11.3 lack
    run("tar", "-xf", sdist, cwd=tmp_path)
    (source,) = tmp_path.iterdir()
    build(source, tmp_path / "dist", "wheel")
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()
    assert {"tests", "configs", "docs", "CHANGELOG.md", "LICENSE"} <= {*os.listdir(source)}
    names = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    assert {name.parts[0].partition("-")[0] for name in names} == {"nmt"}
    paths = [path for path in (root / "nmt").rglob("*") if path.is_file()]
    modules = {path.relative_to(root) for path in paths if path.suffix != ".pyc"}
    assert names >= {*modules, Path("nmt/starter/sample.tsv"), Path("nmt/starter/sample.yaml")}


@pytest.mark.slow
def test_the_installed_command_starts_a_project_without_the_repository(
    built: Path, tmp_path: Path
) -> None:
    """The wheel in a folder of its own, and the other packages of this environment."""
    (wheel,) = built.glob("*.whl")
    pip = ("-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target", "wheel")
    run(sys.executable, *pip, wheel, cwd=tmp_path)
    nmt = tmp_path / "wheel/bin/nmt"
    path = {"PYTHONPATH": str(tmp_path / "wheel")}
    script = "import nmt; print(nmt.__file__)"
    assert run(sys.executable, "-c", script, cwd=tmp_path, **path).startswith(path["PYTHONPATH"])
    run(nmt, "init", "first", cwd=tmp_path, **path)
    prepare = ("prepare", "-c", "sample.yaml", "--set", "data.max_pairs=900")
    assert "written to" in run(nmt, *prepare, cwd=tmp_path / "first", **path)
    assert (tmp_path / "first" / "data" / "prepared" / "sample" / "manifest.json").is_file()
