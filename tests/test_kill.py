"""A fit that is killed goes on with ``--resume`` and ends with the same bits.

Twenty kills, each followed by a resume: ``OMP_NUM_THREADS=1 python tests/test_kill.py 20``.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from dssgnn.checkpoint import load_tensors
from dssgnn.data import minesweeper, read_graph
from dssgnn.estimator import DSSClassifier

SETTINGS = ("--set", "hidden_channels=8", "--set", "patience=null", "--seed", "3", "--quiet")


def write_board(path: Path) -> Path:
    np.savez(path, **{name: value.numpy() for name, value in minesweeper(12, 12, 1).to_dict().items()})
    return path


def start(graph: Path, out: Path, epochs: int, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dssgnn", "fit", str(graph), "--out", str(out), "--epochs", str(epochs)]
    command += [*SETTINGS, *words]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


def heed_interrupts() -> None:
    """A suite that a shell runs in the background is told to ignore them, and what it starts with it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def weights(folder: Path) -> bytes:
    return (folder / "weights.safetensors").read_bytes()


def wait_for(path: Path, process: subprocess.Popen[str], age: int = 0) -> None:
    """Until ``path`` is there and not as old as ``age``, or the process has ended."""
    while process.poll() is None and not (path.exists() and path.stat().st_mtime_ns != age):
        time.sleep(0.002)


def kill_and_resume(
    kills: int, place: Path, seed: int = 0, *, epochs: int = 150, chained: bool = False
) -> list[str]:
    """Kill a fit ``kills`` times at random moments, resume each, and compare with an undisturbed run.

    Args:
        kills: how many.
        place: an empty folder to work in.
        seed: of the moments.
        epochs: how long the runs are.
        chained: kill one run again and again and resume once, instead of a run and a resume for each kill.

    Returns:
        Where each kill struck, in words.
    """
    rng = random.Random(seed)
    graph = write_board(place / "board.npz")
    clock = time.perf_counter()
    reference = start(graph, place / "reference", epochs)
    wait_for(place / ".reference.checkpoint", reference)
    starting = time.perf_counter() - clock
    wait_for(place / "reference", reference)
    training = time.perf_counter() - clock - starting
    finish(reference)
    expected = weights(place / "reference")
    struck: list[str] = []
    while len(struck) < kills:
        out = place / ("m" if chained else f"m{len(struck)}")
        checkpoint = out.with_name(f".{out.name}.checkpoint")
        age = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = start(graph, out, epochs, "--resume")
        if len(struck) % 10 == 9:  # while Python and torch are still being imported, too
            time.sleep(rng.random() * starting)
        else:
            wait_for(checkpoint, process, age)
            time.sleep(rng.random() * training / (kills if chained else 1))
        process.kill()
        process.communicate()
        if process.returncode == 0:  # too late: it had ended
            shutil.rmtree(out)
            continue
        assert process.returncode == -signal.SIGKILL
        struck.append("folder written" if out.exists() else _epochs(checkpoint))
        if out.exists():  # whole, or not there
            assert weights(out) == expected
            DSSClassifier.load(out)
        if not chained or len(struck) == kills:
            finish(start(graph, out, epochs, "--resume"))
            assert weights(out) == expected, f"kill {len(struck)}"
    names = ["board.npz", "reference", *(["m"] if chained else [f"m{i}" for i in range(kills)])]
    assert sorted(path.name for path in place.iterdir()) == sorted(
        names
    )  # no checkpoint, nothing half-written
    return struck


def _epochs(checkpoint: Path) -> str:
    return f"epoch {load_tensors(checkpoint)[1]['epoch']}" if checkpoint.exists() else "before training"


def test_four_kills_end_with_the_same_bits(tmp_path: Path) -> None:
    struck = kill_and_resume(4, tmp_path, seed=1, chained=True)
    assert len(struck) == 4
    assert any(place.startswith("epoch") for place in struck)
    first, second = (DSSClassifier.load(tmp_path / name).state_ for name in ("m", "reference"))
    assert first.history == second.history
    assert first.predictions.equals(second.predictions)
    seconds = first.metrics["training"].pop("seconds"), second.metrics["training"].pop("seconds")
    assert min(seconds) > 0
    assert first.metrics == second.metrics


def test_an_interrupt_is_clean_and_can_be_resumed(tmp_path: Path) -> None:
    graph = write_board(tmp_path / "board.npz")
    process = start(graph, tmp_path / "m", 100000)
    wait_for(tmp_path / ".m.checkpoint", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "--resume" in err
    assert "stopped" in err
    assert "model:" not in out
    assert sorted(p.name for p in tmp_path.iterdir()) == [".m.checkpoint", "board.npz"]
    epoch = load_tensors(tmp_path / ".m.checkpoint")[1]["epoch"]
    settings = {"hidden_channels": 8, "patience": None, "seed": 3, "epochs": epoch + 5}
    whole = DSSClassifier(**settings).fit(read_graph(graph))
    rows: list[dict[str, float]] = []
    resumed = DSSClassifier(**settings).fit(
        read_graph(graph), checkpoint=tmp_path / ".m.checkpoint", resume=True, on_epoch=rows.append
    )
    assert [row["epoch"] for row in rows] == [epoch + i for i in range(5)]
    np.testing.assert_allclose(
        resumed.predict_proba(read_graph(graph)), whole.predict_proba(read_graph(graph)), atol=1e-5
    )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as scratch:
        where = kill_and_resume(count, Path(scratch), seed=0, epochs=400)
    print(f"{len(where)} of {count} finished with the same weights; killed at:", *where, sep="\n  ")
