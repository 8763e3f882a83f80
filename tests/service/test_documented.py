"""What the guide and the Dockerfile say of the service is true."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from genpool.cli import app as commands
from genpool.service import ServedModel, create_app
from tests.helpers.services import listening

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs" / "guides" / "service.md").read_text(encoding="utf-8")
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"


def instructions(name: str) -> list[str]:
    """The arguments of every such instruction of the Dockerfile, on one line each."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{name} (.+)$", joined, re.MULTILINE)


def test_the_openai_example_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    [example] = re.findall(r"^```py\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    with listening(create_app(ServedModel.load())) as address:
        assert ADDRESS in example
        exec(example.replace(ADDRESS, address), {})
    [expected] = re.findall(r"print\(.*\)  # (\d+)$", example, re.MULTILINE)
    assert capsys.readouterr().out == f"{expected}\n"


def test_every_endpoint_of_the_guide_exists() -> None:
    described = create_app(ServedModel.load()).openapi()["paths"]
    named = set(re.findall(r"`(?:POST |GET )?(/[a-z0-9/]+)`", GUIDE.replace("`, `", "` `")))
    assert named >= {"/v1/embeddings", "/similarity", "/explain", "/search", "/v1/models"}
    assert named - {"/openapi.json"} <= set(described)


def test_the_image_runs_the_service_as_another_user_than_root() -> None:
    [user] = instructions("USER")
    assert int(user) > 0
    [command] = [shlex.split(line.strip("[]").replace(",", " ")) for line in instructions("CMD")]
    assert command[:2] == ["genpool", "serve"]
    assert "serve" in {info.name for info in commands.registered_commands}
    [check] = instructions("HEALTHCHECK")
    assert "/healthz" in check
    [port] = instructions("EXPOSE")
    assert f":{port}/healthz" in check and command[-1] == port


def test_the_image_is_made_of_files_that_exist_and_are_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = [line.split()[:-1] for line in instructions("COPY") if not line.startswith("--from")]
    names = [name for line in copied for name in line]
    assert names and ignored[0] == "*"
    for name in names:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not installed")
    done = subprocess.run(
        [linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
