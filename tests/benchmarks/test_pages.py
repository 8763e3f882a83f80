"""The pages of results/: their commands exist, their data is found, their tables are right."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from benchmarks import pages
from benchmarks.data import DEFAULT_FOLDER, REPOSITORY, data_folder, data_path, has_data
from benchmarks.results_pages import record_runs
from genpool.errors import InputError

RESULTS = sorted((REPOSITORY / "results").glob("*.md"))
SCRIPTS = sorted((REPOSITORY / "benchmarks" / "results_pages").glob("[a-z]*.py"))
COMMAND = re.compile(r"python -m (benchmarks[\w.]*)")


def commands(path: Path) -> set[str]:
    return set(COMMAND.findall(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", [*RESULTS, *SCRIPTS], ids=lambda path: path.name)
def test_every_command_on_a_page_names_a_script(path: Path) -> None:
    assert all(importlib.util.find_spec(module) for module in commands(path))
    assert "python benchmarks/" not in path.read_text(encoding="utf-8")
    if path.name == "embedded_quality.py":  # commands are found
        assert "benchmarks.results_pages.embedded_quality" in commands(path)


def test_data_is_found_in_the_folder_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GENPOOL_DATA", raising=False)
    assert data_folder() == DEFAULT_FOLDER == REPOSITORY.parent / "shared" / "data"
    monkeypatch.setenv("GENPOOL_DATA", str(tmp_path))
    (tmp_path / "sick").mkdir()
    assert has_data("sick") and not has_data("snli")
    assert data_path("sick") == tmp_path / "sick"
    with pytest.raises(InputError, match=r"snli/test\.tsv is not in the data .*GENPOOL_DATA"):
        data_path("snli/test.tsv")


def test_the_scores_of_a_run_become_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "runs" / "sick"
    run.mkdir(parents=True)
    classes = [{"label": "no", "support": 3}, {"label": "yes", "support": 1}]
    test = {"accuracy": 0.75, "interval": [0.3, 0.95], "classes": classes, "total": 4}
    results = {"dev": {"accuracy": 0.5}, "test": test}
    about = {"data": "DATA/sick", "threads": 2, "machine": "m", "device": "cpu"}
    about["versions"] = {"genpool": "0.1.0"}
    (run / "results.json").write_text(json.dumps(results))
    (run / "run.json").write_text(json.dumps(about))
    (run / "config.toml").write_text("[training]\nseed = 7\n")
    (run / "metrics.jsonl").write_text('{"seconds": 10}\n{"seconds": 120}\n')
    monkeypatch.setattr(pages, "page_path", lambda name: tmp_path / f"{name}.md")
    record_runs.main([run])
    page = (tmp_path / "training.md").read_text(encoding="utf-8")
    row = "| sick | 50.00 % | **75.00 %** | 30.00 to 95.00 | 75.00 % | 7 | 2 min | 2 |"
    assert row in page.splitlines()
    assert "genpool train sick --data DATA/sick --set vectors.path=" in page
