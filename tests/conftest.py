"""Fixtures for all tests."""

import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# Set before torch is imported: tests run in several processes, and threads do not speed up small
# tensors.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
# For tests that import onnxruntime before nmt: no telemetry.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import pytest
import spacy
from hypothesis import settings
from matplotlib.figure import Figure

from nmt import cli
from tests import toy

# Background jobs of a shell ignore Ctrl-C, and so would the processes that tests start and
# interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):  # `nohup` ignores it
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# No deadline: a busy machine may be slow. Continuous integration draws more examples, and the same
# ones each time.
settings.register_profile("default", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="
)  # a PNG
EXTRA_BYTES = 1 << 29  # of memory, for tests of damaged and hostile files
ROOT = Path(__file__).resolve().parent.parent

# Neither this process nor another Python process of the tests connects to another machine.
NO_NETWORK = ROOT / "tests" / "no_network"
runpy.run_path(str(NO_NETWORK / "sitecustomize.py"))
os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, (str(NO_NETWORK), os.environ.get("PYTHONPATH")))
)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sample(root: Path) -> list[tuple[str, str]]:
    """The pairs of the built-in sample."""
    lines = (root / "data" / "sample" / "sample.tsv").read_text(encoding="utf-8").splitlines()
    return [(src, tgt) for src, tgt, *_ in (line.split("\t") for line in lines)]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the repository; tests that need it are skipped if it is
    missing.
    """
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder}")
    return folder


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str


BLANK = cache(spacy.blank)  # which takes longer than most commands of the tests


@dataclass(frozen=True)
class Run:
    """Runs command lines of nmt in this process."""

    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *words: object, stdin: bytes = b"") -> Result:
        self.monkeypatch.setattr(sys, "argv", ["nmt", *map(str, words)])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capsys.readouterr()
        status = 0
        try:
            cli.main()
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        captured = self.capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(status, captured.out, captured.err)

    def prints(self, *words: object, stdin: bytes = b"") -> str:
        """What a command that succeeds without a warning prints."""
        result = self(*words, stdin=stdin)
        assert (result.status, result.err) == (0, "")
        return result.out

    def refuses(self, text: str, *words: object, stdin: bytes = b"", status: int = 1) -> None:
        """The command prints nothing but an error with this text. Status 2 is that of a usage
        error, in a frame whose lines are joined here.
        """
        result = self(*words, stdin=stdin)
        assert (result.status, result.out) == (status, "")
        error = result.err if status == 1 else " ".join(result.err.replace("│", "").split())
        assert text in error


@pytest.fixture
def nmt(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(spacy, "blank", BLANK)
    return Run(capsys, monkeypatch)


COMMANDS = """
import io, json, sys
from contextlib import redirect_stdout
from nmt.cli import main
texts = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["nmt", *words]
    with redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as exit_:
            if exit_.code:
                raise
    texts.append(out.getvalue())
print(json.dumps(texts))
"""


def in_one_process(
    commands: Sequence[Sequence[str]], folder: Path, first: str = "", **environment: str
) -> list[str]:
    """Run command lines of nmt in a process of their own; what each prints.

    Args:
        first: Python that runs before them.
    """
    words = [sys.executable, "-c", first + COMMANDS, json.dumps(commands)]
    ended = subprocess.run(
        words, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return [*json.loads(ended.stdout)]


@pytest.fixture(scope="module", autouse=True)
def quick_pictures() -> Iterator[None]:
    """Pictures of one pixel: drawing takes longer than most trainings of the tests. Commands in
    processes of their own draw, and so do the tests of pictures.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda _, file, **__: file.write(PIXEL))
        for module in ("nmt.extras.curves.picture", "nmt.report.heatmap"):
            patch.setattr(f"{module}._figure", lambda *_: Figure())
        yield


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that the test has saved."""
    saved: list[Figure] = []
    savefig = Figure.savefig

    def record(self: Figure, *args: Any, **options: Any) -> None:
        saved.append(self)
        savefig(self, *args, **options)

    monkeypatch.setattr(Figure, "savefig", record)
    return saved


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C still ends the tests after a command in this process, which ignores it from its end
    on.
    """
    handler = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture
def little_memory() -> Iterator[None]:
    """The test has no more than `EXTRA_BYTES` beside what this process has: so a size is checked
    before memory is reserved.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + EXTRA_BYTES, limits[1])
    )
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium, driven by playwright; for tests marked with `needs_chromium`."""
    from playwright.sync_api import expect, sync_playwright  # here, because few tests need it

    from tests.extras.analysis.test_html import CHROMIUM

    expect.set_options(timeout=30_000)  # milliseconds, on a busy machine
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With prepared/, run/ and other/, a run with another seed. Tests write only to copies."""
    folder = tmp_path_factory.mktemp("runs")
    toy.train(folder)
    other = tmp_path_factory.mktemp("other")
    shutil.copytree(toy.train(other, seed=2), folder / "other")
    return folder


@pytest.fixture
def run(folder: Path, tmp_path: Path) -> Path:
    """A copy of the run to write to."""
    left_out = shutil.ignore_patterns("evaluation")
    return Path(shutil.copytree(folder / "run", tmp_path / "run", ignore=left_out))
