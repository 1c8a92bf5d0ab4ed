"""The build cache: whole entries or none, under damage, races, full disks and read-only folders."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from texpr.toolchain.cache import INDEX, Cache, key


def test_a_key_tells_lists_of_parts_apart() -> None:
    assert key(["ab", "c"]) != key(["a", "bc"]) != key(["abc"])
    assert key(["a", b"b"]) == key(["a", "b"])


def test_what_is_put_is_got(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    assert cache.get(key(["x"])) is None
    put = cache.put(key(["x"]), {"a.so": b"\x00\x01", "b": b""})
    got = cache.get(key(["x"]))
    assert got is not None and got.files == put.files == {"a.so": b"\x00\x01", "b": b""}
    assert got.folder is not None and (got.folder / "a.so").read_bytes() == b"\x00\x01"


def test_through_builds_once(tmp_path: Path) -> None:
    built: list[int] = []

    def build() -> dict[str, bytes]:
        built.append(1)
        return {"f": b"x"}

    cache = Cache(tmp_path)
    assert cache.through("aa1", build).files == cache.through("aa1", build).files
    assert len(built) == 1


@pytest.mark.parametrize("damage", ["truncated", "gone", "index"])
def test_a_damaged_entry_is_built_again(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    folder = cache.put("aa1", {"f": b"whole"}).folder
    assert folder is not None
    match damage:
        case "truncated":
            (folder / "f").write_bytes(b"who")
        case "gone":
            (folder / "f").unlink()
        case _:
            (folder / INDEX).write_text("{")
    assert cache.get("aa1") is None
    assert cache.through("aa1", lambda: {"f": b"whole"}).files == {"f": b"whole"}
    assert cache.get("aa1") is not None
    assert [p.name for p in folder.parent.iterdir()] == ["aa1"], "nothing is left beside the entry"


def test_a_root_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = Cache(tmp_path / "file" / "cache")
    entry = cache.put("aa1", {"f": b"x"})
    assert entry.files == {"f": b"x"} and entry.folder is None
    assert cache.get("aa1") is None


def test_writers_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    wrong: list[object] = []

    def work() -> None:
        for turn in range(20):
            found = cache.through(f"aa{turn}", lambda turn=turn: {"f": bytes([turn]) * 1000})
            if found.files["f"] != bytes([turn]) * 1000:
                wrong.append(turn)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sorted(p.name for p in (tmp_path / "aa").iterdir()) == sorted(f"aa{turn}" for turn in range(20))


def test_the_entries_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit=3000)
    for at, name in enumerate(("aa1", "aa2", "aa3")):
        folder = cache.put(name, {"f": b"x" * 800}).folder
        assert folder is not None
        os.utime(folder, (at, at))
    cache.get("aa1")
    cache.put("aa4", {"f": b"x" * 800})
    assert [name for name in ("aa1", "aa2", "aa3", "aa4") if cache.get(name)] == ["aa1", "aa3", "aa4"]


def test_all_entries_are_looked_at_only_where_there_may_be_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pruned: list[Path] = []

    def prune(cache: Cache) -> None:
        pruned.append(cache.root)

    monkeypatch.setattr(Cache, "prune", prune)
    for name in ("aa1", "ab1", "ac1"):
        Cache(tmp_path, limit=1 << 20).put(name, {"f": b"x" * 800})
    assert not pruned
    Cache(tmp_path, limit=1 << 18).put("aa2", {"f": b"x" * 800})
    assert pruned
