"""The states of the disk after a power loss, for small records of changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.faults.power_loss import Disk, Event, State, crash_states, read_record

OLD, NEW = b"old", b"new content"


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """A folder with one file."""
    (tmp_path / "box").mkdir()
    (tmp_path / "box" / "file").write_bytes(OLD)
    return Disk(tmp_path / "box")


def replacing(disk: Disk, *, synchronizes: bool) -> Iterator[Event]:
    """The changes of a program that replaces the file by a rename."""
    box = str(disk.root)
    yield Event("create", ["1", f"{box}/.file.0123abcd.tmp"])
    yield Event("write", ["1", "0", str(len(NEW))], NEW)
    if synchronizes:
        yield Event("sync", ["1", f"{box}/.file.0123abcd.tmp"])
    yield Event("rename", [f"{box}/.file.0123abcd.tmp", f"{box}/file"])
    if synchronizes:
        yield Event("sync", [str(disk.root.stat().st_ino), box])


def contents(states: list[State]) -> set[bytes | None]:
    return {state.files["file"] for state in states}


def test_a_synchronized_file_is_old_or_new(disk: Disk) -> None:
    states = list(crash_states(disk, [*replacing(disk, synchronizes=True)], 20, seed=1))
    assert contents(states) == {OLD, NEW}
    assert contents([state for state in states if state.after == 5]) <= {NEW}


def test_a_file_that_was_not_synchronized_may_be_empty_or_cut_off(disk: Disk) -> None:
    states = list(crash_states(disk, [*replacing(disk, synchronizes=False)], 20, seed=1))
    assert contents(states) > {OLD, NEW, b""}
    assert all(
        content is not None and (content == OLD or NEW.startswith(content))
        for content in contents(states)
    )


def test_an_addition_to_a_file_may_be_cut_off_but_not_what_was_there(disk: Disk) -> None:
    inode = str((disk.root / "file").stat().st_ino)
    addition = [Event("write", [inode, str(len(OLD)), str(len(NEW))], NEW)]
    found = contents(list(crash_states(disk, addition, 60, seed=1)))
    assert found > {OLD, OLD + NEW}
    assert all(content is not None and content.startswith(OLD) for content in found)
    emptied = [
        Event("truncate", [inode, "0"]),
        Event("write", [inode, "0", str(len(OLD))], OLD + NEW),
    ]
    assert b"" in contents(list(crash_states(disk, emptied, 60, seed=1)))


def test_the_state_of_a_kill_has_all_changes(disk: Disk, tmp_path: Path) -> None:
    killed = {
        state.after: state
        for state in crash_states(disk, [*replacing(disk, synchronizes=True)], 0, seed=1)
        if state.name == "killed"
    }
    killed[2].write(tmp_path / "state")
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == {
        "file": OLD,
        ".file.0123abcd.tmp": NEW,
    }


def test_renames_past_the_c_library_are_found(disk: Disk, tmp_path: Path) -> None:
    record = tmp_path / "record"
    record.write_bytes(
        f"create\t1\t{disk.root}/.tmpQ3xY7a\nwrite\t1\t0\t2\na\nsync\t1\t{disk.root}/weights\n".encode()
    )
    events = read_record(record)
    assert [event.kind for event in events] == ["create", "write", "rename", "sync"]
    assert events[1].data == b"a\n"
    killed = [
        state.files for state in crash_states(disk, events, 0, seed=1) if state.name == "killed"
    ]
    assert killed[-1] == {"file": OLD, "weights": b"a\n"}
