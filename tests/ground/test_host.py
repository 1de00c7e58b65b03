"""What the machine tells of itself, and what is assumed where it is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

from treadle import config, host


def test_the_knob_decides_the_threads() -> None:
    for chosen, threads in ((1, 1), (7, 7), (100, host.MOST_THREADS)):
        with config.THREADS.set(chosen):
            assert host.threads() == threads
    with config.THREADS.set(0):
        assert 1 <= host.threads() <= host.MOST_THREADS


def test_threads_without_affinities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(host.os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(host.os, "cpu_count", lambda: 3)
    with config.THREADS.set(0):
        assert host.threads() == 3


def test_caches(tmp_path: Path) -> None:
    for number, (kind, level, size) in enumerate(
        [
            ("Data", "1", "48K"),
            ("Instruction", "1", "64K"),
            ("Unified", "2", "2M"),
            ("Data", "9", "1K"),
        ]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "type").write_text(kind + "\n")
        (folder / "level").write_text(level + "\n")
        (folder / "size").write_text(size + "\n")
    (tmp_path / "index7").mkdir()  # one that tells nothing
    assert host.cache_bytes(str(tmp_path)) == (48 << 10, 2 << 20, 32 << 20)
    assert host.cache_bytes(str(tmp_path / "missing")) == (32 << 10, 1 << 20, 32 << 20)


def test_large_arrays_begin_at_a_page() -> None:
    assert [host.place(offset, 100) for offset in (0, 1, 64, 65)] == [0, 64, 64, 128]
    assert [host.place(offset, 1 << 20) for offset in (0, 64, 4096)] == [0, 4096, 4096]
