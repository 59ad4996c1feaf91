"""What the server loads, and where it listens."""

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs nmt[serve]")

from nmt.errors import NmtError
from nmt.extras.serve.answers import ServedRun
from nmt.extras.serve.command import is_loopback, load_runs, open_socket
from nmt.extras.share.bundle import write_bundle
from nmt.run.load import find_run_and_checkpoint


def test_a_bundle_translates_as_its_run(
    run_folder: Path, served: list[ServedRun], tmp_path: Path
) -> None:
    path = tmp_path / "toy.v2.nmt"
    write_bundle(*find_run_and_checkpoint(run_folder), path)
    (run,) = load_runs([path], device="cpu", overrides=["decoding.beam=3"])
    assert (run.name, run.src_language, run.tgt_language, run.max_translations) == (
        "toy.v2",
        "en",
        "de",
        3,
    )
    text = "The king loves the river."
    assert (
        run.translator.translate([text])[0].text == served[0].translator.translate([text])[0].text
    )


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("nmt", False),
    ],
)
def test_loopback(host: str, local: bool) -> None:
    assert is_loopback(host) == local


def test_an_address_that_cannot_be_used() -> None:
    with pytest.raises(NmtError, match=r"^cannot serve at no\.such\.host\.invalid, port 0 \("):
        open_socket("no.such.host.invalid", 0)
    with open_socket("127.0.0.1", 0) as other:
        port = other.getsockname()[1]
        text = rf"^cannot serve at 127\.0\.0\.1, port {port} \(Address already in use.*\); choose"
        with pytest.raises(NmtError, match=text):
            open_socket("127.0.0.1", port)
