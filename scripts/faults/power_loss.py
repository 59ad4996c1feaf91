"""What POSIX allows on disk after a power loss: built from the record of all changes that a command
has made to files.

What a program writes is on disk for certain only when it has synchronized it: the content of a file
by `fsync` of the file, its name by `fsync` of its folder. Everything later may be lost, or not. A
rename is atomic.
"""

import copy
import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

RANDOM_NAME = re.compile(
    r"[0-9a-f]{8}(?=\.tmp$)|(?<=building-)[0-9a-f]{8}$|(?<=replaced-)[0-9a-f]{8}$|(?<=^\.tmp)\w{6}$"
)


@dataclass
class File:
    """now: what a program reads. durable: what is on disk for certain. kept: its first bytes, which
    no later change has touched.
    """

    now: bytes = b""
    durable: bytes = b""
    kept: int = 0


@dataclass
class Folder:
    """durable: the entries that are on disk for certain. pending: the later entries, one version
    after the other.
    """

    now: "dict[str, Node]" = field(default_factory=dict)
    durable: "dict[str, Node]" = field(default_factory=dict)
    pending: "list[dict[str, Node]]" = field(default_factory=list)

    def change(self) -> None:
        self.pending.append(dict(self.now))


Node = File | Folder


@dataclass(frozen=True)
class Event:
    """A change: its kind, its fields, and the data of a write."""

    kind: str
    fields: list[str]
    data: bytes = b""


def read_record(path: Path) -> list[Event]:
    """The record of `Laboratory.run`, with the renames that some libraries make without the C
    library.
    """
    content, position, events = path.read_bytes(), 0, []
    while position < len(content):
        end = content.index(b"\n", position)
        kind, *fields = content[position:end].decode().split("\t")
        position = end + 1
        size = int(fields[2]) if kind == "write" else 0
        events.append(Event(kind, fields, content[position : position + size]))
        position += size
    return _with_hidden_renames(events)


def _with_hidden_renames(events: list[Event]) -> list[Event]:
    """safetensors writes a file under another name: the rename comes after the last write, before
    the next `fsync`.
    """
    names: dict[str, str] = {}
    last_write: dict[str, int] = {}
    hidden: dict[int, Event] = {}
    for i, event in enumerate(events):
        if event.kind == "create":
            names[event.fields[0]] = event.fields[1]
        elif event.kind == "rename":
            names.update(
                {inode: event.fields[1] for inode, name in names.items() if name == event.fields[0]}
            )
        elif event.kind in ("write", "truncate"):
            last_write[event.fields[0]] = i
        elif event.kind == "sync":
            inode, name = event.fields
            old = names.get(inode)
            if (
                old is not None
                and Path(old).name.startswith(".tmp")
                and Path(old).parent == Path(name).parent
                and old != name
            ):
                hidden[last_write[inode]] = Event("rename", [old, name])
                names[inode] = name
    return [
        each
        for i, event in enumerate(events)
        for each in (event, hidden.get(i))
        if each is not None
    ]


class Disk:
    """The files below `root`, as programs see them and as they may be after a power loss."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tree = _read(root)
        self._by_inode: dict[str, Node] = {}
        for path in (root, *root.rglob("*")):
            self._by_inode[str(path.stat().st_ino)] = self._find(path)

    def apply(self, event: Event) -> None:
        """Make a change."""
        match event.kind, event.fields:
            case "create", [inode, path]:
                self._add(path, inode, File())
            case "mkdir", [inode, path]:
                self._add(path, inode, Folder())
            case "write", [inode, offset, _]:
                self._write(inode, int(offset), event.data)
            case "truncate", [inode, size]:
                file = self._file(inode)
                file.now = file.now[: int(size)].ljust(int(size), b"\0")
                file.kept = min(file.kept, int(size))
            case "rename", [old, new]:
                self._folder(new).now[Path(new).name] = self._remove(old)
                self._folder(new).change()
                if self._folder(old) is not self._folder(
                    new
                ):  # two changes, of which one may be lost
                    self._folder(old).change()
            case "remove", [path]:
                self._remove(path)
                self._folder(path).change()
            case "sync", [inode, _]:
                self._synchronize(self._by_inode[inode])

    def _write(self, inode: str, offset: int, data: bytes) -> None:
        file = self._file(inode)
        file.now = file.now[:offset].ljust(offset, b"\0") + data + file.now[offset + len(data) :]
        file.kept = min(file.kept, offset)

    def _synchronize(self, node: Node) -> None:
        if isinstance(node, File):
            node.durable, node.kept = node.now, len(node.now)
        else:
            node.durable, node.pending = dict(node.now), []

    def _add(self, path: str, inode: str, node: Node) -> None:
        folder = self._folder(path)
        folder.now[Path(path).name] = self._by_inode[inode] = node
        folder.change()

    def _remove(self, path: str) -> Node:
        return self._folder(path).now.pop(Path(path).name)

    def _folder(self, path: str) -> Folder:
        folder = self._find(Path(path).parent)
        assert isinstance(folder, Folder)
        return folder

    def _file(self, inode: str) -> File:
        file = self._by_inode[inode]
        assert isinstance(file, File)
        return file

    def _find(self, path: Path) -> Node:
        node: Node = self.tree
        for name in path.relative_to(self.root).parts:
            assert isinstance(node, Folder)
            node = node.now[name]
        return node


@dataclass(frozen=True)
class State:
    """A content of the disk. after: the number of changes before the crash. files: path -> content;
    None for a folder.
    """

    name: str
    after: int
    files: dict[str, bytes | None]

    def digest(self) -> str:
        """Equal for states that differ only in random parts of temporary names."""
        digest = hashlib.sha256()
        for path, content in sorted(self.files.items()):
            name = "/".join(RANDOM_NAME.sub("X", part) for part in path.split("/"))
            digest.update(f"{name}\0{'folder' if content is None else _digest(content)}\n".encode())
        return digest.hexdigest()

    def write(self, root: Path) -> None:
        """Fill an empty folder."""
        root.mkdir(parents=True)
        for name, content in self.files.items():
            if content is None:
                (root / name).mkdir(parents=True, exist_ok=True)
            else:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content)


@lru_cache(maxsize=10_000)
def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def crash_states(start: Disk, events: list[Event], n_random: int, seed: int) -> Iterator[State]:
    """The different states that a crash after each change can leave. start: the disk before the
    first change.

    For each crash: nothing is lost (as after SIGKILL); all is lost that is not synchronized; only
    such contents; only such names; and `n_random` random mixtures.
    """
    disk, seen = copy.deepcopy(start), set()
    for after, event in enumerate([None, *events]):
        if event is not None:
            disk.apply(event)
        generator = random.Random(f"{seed} {after}")
        variants = [
            ("killed", True, True),
            ("synchronized", False, False),
            ("names", False, True),
            ("contents", True, False),
        ]
        for name, contents, names in variants:
            state = State(
                name,
                after,
                _flatten(disk.tree, _all_or_nothing(contents), _latest_or_durable(names)),
            )
            if (digest := state.digest()) not in seen:
                seen.add(digest)
                yield state
        for _ in range(n_random):
            state = State(
                "mixture",
                after,
                _flatten(disk.tree, _random_content(generator), _random_entries(generator)),
            )
            if (digest := state.digest()) not in seen:
                seen.add(digest)
                yield state


Content = Callable[[File], bytes]
Entries = Callable[[Folder], "dict[str, Node]"]


def _all_or_nothing(everything: bool) -> Content:
    return lambda file: file.now if everything else file.durable


def _latest_or_durable(latest: bool) -> Entries:
    return lambda folder: folder.now if latest else folder.durable


def _random_content(generator: random.Random) -> Content:
    def content(file: File) -> bytes:
        if file.now == file.durable:
            return file.now
        return generator.choice(
            [file.now, file.durable, file.now[: generator.randint(file.kept, len(file.now))]]
        )

    return content


def _random_entries(generator: random.Random) -> Entries:
    """The entries of a folder reach the disk in their order."""
    return lambda folder: generator.choice([folder.durable, *folder.pending])


def _flatten(
    folder: Folder, content: Content, entries: Entries, prefix: str = ""
) -> dict[str, bytes | None]:
    files: dict[str, bytes | None] = {}
    for name, node in entries(folder).items():
        if isinstance(node, File):
            files[prefix + name] = content(node)
        else:
            files[prefix + name] = None
            files |= _flatten(node, content, entries, f"{prefix}{name}/")
    return files


def _read(path: Path) -> Folder:
    folder = Folder()
    for child in sorted(path.iterdir()):
        content = b"" if child.is_dir() else child.read_bytes()
        node: Node = _read(child) if child.is_dir() else File(content, content, len(content))
        folder.now[child.name] = node
    folder.durable = copy.copy(folder.now)
    return folder
