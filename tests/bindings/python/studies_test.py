"""Sweeps, experiments and reports from Python: the folders of the program's commands."""
import json
import re

import numemu
import pytest

SWEEP = {"net": "mlp", "data": "glyphs", "eval_images": 200, "grid": {"roles.weight.format": ["int8", "int4"]}}


def test_a_sweep_has_the_rows_of_the_command(tmp_path, program):
    states = []
    study = numemu.sweep(SWEEP, out=tmp_path / "a", progress=lambda *state: states.append(state))
    (tmp_path / "s.json").write_text(json.dumps({"numemu_sweep": 1, **SWEEP}))
    program.run("sweep", "s.json", "--out", "b", "--quiet")
    assert (tmp_path / "a/rows.jsonl").read_bytes() == (tmp_path / "b/rows.jsonl").read_bytes()
    assert study.info["points"] == study.info["computed"] == 2
    assert study.info["names"] == ["int8 / float32", "int4 / float32"]
    assert states and states[-1][1] == states[-1][2]
    assert any(state[0].startswith("point 2/2") for state in states)
    again = numemu.sweep(SWEEP, out=tmp_path / "a")
    assert (again.info["computed"], again.info["kept"]) == (0, 2)

    rows = study.rows
    assert rows == numemu.rows(tmp_path / "b")
    assert [row["point"]["recipe"]["roles"]["weight"]["format"] for row in rows] == ["int8", "int4"]
    assert rows[0]["metrics"]["top1"] > rows[1]["metrics"]["top1"]


def test_rows_are_a_frame_with_pandas(tmp_path):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: apt install python3-pandas")
    study = numemu.sweep({**SWEEP, "metrics": ["top5"]}, out=tmp_path / "a")
    table = study.frame()
    assert isinstance(table, pandas.DataFrame) and len(table) == 2
    rows = study.rows
    assert list(table["metrics.top1"]) == [row["metrics"]["top1"] for row in rows]
    assert list(table["point.recipe.roles.weight.format"]) == ["int8", "int4"]
    assert list(table["score.top5"]) == [row["scores"][0]["value"] for row in rows]
    assert list(table["score.top5.ci95.low"]) == [row["scores"][0]["ci95"][0] for row in rows]


def test_reports_are_shown_in_the_page(tmp_path):
    study = numemu.sweep(SWEEP, out=tmp_path / "a")
    shown = study._repr_html_()
    assert re.match(r'<iframe srcdoc="&lt;!doctype html&gt;', shown, re.IGNORECASE)
    assert "</script" not in shown  # all of it is text of the attribute
    report = numemu.report(tmp_path / "a", height=500)
    assert "height: 500px" in report._repr_html_() and report.unfinished == ""
    assert (tmp_path / "a/report.csv").exists()


def test_an_experiment_gives_its_result(tmp_path):
    names = numemu.experiments()
    assert "stochastic-pruning" in names
    study = numemu.experiment("stochastic-pruning", size="smoke", out=tmp_path / "e")
    assert study.result == json.loads((tmp_path / "e/experiment.json").read_text())
    assert study.result["findings"] and study.info["concluded"]


def test_mistakes_are_told_as_the_program_does(tmp_path, program):
    with pytest.raises(numemu.Error) as caught:
        numemu.sweep({**SWEEP, "grid": {"roles.weight.format": ["int9000"]}}, out=tmp_path / "a")
    assert str(caught.value).startswith("sweep: ") and "int9000" in str(caught.value)
    with pytest.raises(numemu.Error) as caught:
        numemu.experiment("stochastic", out=tmp_path / "e")
    assert str(caught.value) == program.refusal("experiment", "stochastic", "--out", "e")
    with pytest.raises(numemu.Error) as caught:
        numemu.rows(tmp_path / "none")
    assert "none" in str(caught.value)
