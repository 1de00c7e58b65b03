"""The disk cache: entries that are damaged, missing, or written by many processes at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from treadle import config
from treadle.engine import disk


@pytest.fixture(autouse=True)
def own_folder(tmp_path):
    with config.CACHE_DIR.set(str(tmp_path)), config.CACHE.set(1):
        yield tmp_path


def test_what_is_written_is_read():
    disk.write("a", b"content")
    assert disk.read("a") == b"content"
    assert disk.read("b") is None


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "longer"])
def test_damage_reads_as_missing(own_folder, damage):
    disk.write("a", b"content of some length")
    path = own_folder / "a"
    data = path.read_bytes()
    changed = {
        "truncate": data[:-3],
        "flip": data[:-1] + bytes([data[-1] ^ 1]),
        "empty": b"",
        "longer": data + b"x",
    }
    path.write_bytes(changed[damage])
    assert disk.read("a") is None


def test_a_folder_that_cannot_be_made_costs_only_the_cache(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with config.CACHE_DIR.set(str(blocked)):
        disk.write("a", b"x")
        assert disk.read("a") is None


def test_the_parts_of_a_digest_have_boundaries():
    assert disk.digest("ab", "c") != disk.digest("a", "bc")
    assert disk.digest("ab") == disk.digest(b"ab")


def test_trim_deletes_the_oldest(own_folder):
    for number in range(4):
        disk.write(f"e{number}", bytes(1000))
        os.utime(own_folder / f"e{number}", (number, number))
    disk.trim(2 * disk.BLOCK + 100)  # a small file takes a block
    assert [disk.read(f"e{n}") is None for n in range(4)] == [True, True, False, False]


WRITER = """
import sys
from treadle import config
from treadle.engine import disk
config.CACHE_DIR.value = sys.argv[1]
while True:
    disk.write("shared", b"0123456789" * 200_000)
"""


def test_a_folder_that_was_trimmed_within_the_hour_is_left_alone(own_folder, monkeypatch):
    trims = []
    monkeypatch.setattr(disk, "trim", lambda: trims.append(1))
    disk.trim_now_and_then()
    disk.trim_now_and_then()
    assert len(trims) == 1
    stamp = own_folder / disk.STAMP
    os.utime(stamp, (0, 0))
    disk.trim_now_and_then()
    assert len(trims) == 2
    assert stamp.stat().st_mtime > 0


def test_a_folder_that_is_gone_needs_no_trim(own_folder):
    with config.CACHE_DIR.set(str(own_folder / "gone")):
        disk.trim_now_and_then()


def test_writers_killed_in_the_middle_leave_no_damage(own_folder):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(own_folder)]) for _ in range(2)]
    whole = b"0123456789" * 200_000
    deadline = time.monotonic() + 30
    while disk.read("shared") is None and time.monotonic() < deadline:
        time.sleep(0.01)
    for writer in writers:
        assert disk.read("shared") == whole
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert disk.read("shared") == whole
