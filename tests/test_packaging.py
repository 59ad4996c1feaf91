"""The wheel and the sdist work without the repository."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


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


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `nmt` command of a new environment: the wheel, and the other packages of this
    environment.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    bin_folder = folder / ("Scripts" if os.name == "nt" else "bin")
    python = bin_folder / ("python.exe" if os.name == "nt" else "python")
    packages = Path(
        run(
            python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder
        ).strip()
    )
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    (wheel,) = built.glob("*.whl")
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        wheel,
        cwd=folder,
    )
    return bin_folder / "nmt"


def test_the_sdist_gives_the_same_wheel(built: Path, tmp_path: Path) -> None:
    (sdist,), (wheel,) = built.glob("*.tar.gz"), built.glob("*.whl")
    run(
        "tar", "-xf", sdist, cwd=tmp_path
    )  # tarfile warns without `filter`, which Python 3.11.0 to 3.11.3 lack
    (source,) = tmp_path.iterdir()
    build(source, tmp_path / "dist", "wheel")
    assert (tmp_path / "dist" / wheel.name).read_bytes() == wheel.read_bytes()
    assert {"tests", "configs", "docs", "CHANGELOG.md", "LICENSE"} <= {
        path.name for path in source.iterdir()
    }


def test_the_wheel_holds_the_package_and_the_starter_project_only(built: Path, root: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = [Path(name) for name in zipfile.ZipFile(wheel).namelist()]
    assert {name.parts[0].partition("-")[0] for name in names} == {"nmt"}
    modules = {
        path.relative_to(root)
        for path in (root / "nmt").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert modules <= {*names}
    assert {*names} >= {
        Path("nmt/starter/sample.tsv"),
        Path("nmt/starter/sample.yaml"),
        Path("nmt/py.typed"),
    }


def test_the_installed_command_starts_a_project_without_the_repository(
    installed: Path, tmp_path: Path
) -> None:
    run(installed, "init", "first", cwd=tmp_path)
    assert "written to" in run(
        installed,
        "prepare",
        "-c",
        "sample.yaml",
        "--set",
        "data.max_pairs=900",
        cwd=tmp_path / "first",
    )
    assert (tmp_path / "first" / "data" / "prepared" / "sample" / "manifest.json").is_file()


def test_the_module_is_the_installed_one(installed: Path, tmp_path: Path) -> None:
    python = installed.with_name("python.exe" if os.name == "nt" else "python")
    path = Path(run(python, "-c", "import nmt; print(nmt.__file__)", cwd=tmp_path).strip())
    assert path.is_relative_to(installed.parent.parent)
