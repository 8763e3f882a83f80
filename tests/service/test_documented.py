"""What guide, README and Dockerfile say of the service is true, and of the page."""

import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

import genpool
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


def test_endpoints_and_example_of_the_guide_exist(capsys: pytest.CaptureFixture[str]) -> None:
    app = create_app(ServedModel.load())
    described = app.openapi()["paths"]
    named = set(re.findall(r"`(?:POST |GET )?(/[a-z0-9/]+)`", GUIDE.replace("`, `", "` `")))
    assert named >= {"/v1/embeddings", "/similarity", "/explain", "/search", "/v1/models"}
    assert named - {"/openapi.json"} <= set(described)
    pytest.importorskip("openai")
    [example] = re.findall(r"^```py\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    with listening(app) as address:
        assert ADDRESS in example
        exec(example.replace(ADDRESS, address), {})
    [expected] = re.findall(r"print\(.*\)  # (\d+)$", example, re.MULTILINE)
    assert capsys.readouterr().out == f"{expected}\n"


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
    # It is made of files that exist and are not ignored.
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = [line.split()[:-1] for line in instructions("COPY") if not line.startswith("--from")]
    names = [name for line in copied for name in line]
    assert names and ignored[0] == "*"
    for name in names:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored


# --- the page: no build step, no outside address, nothing that the policy would refuse

PAGE = Path(genpool.__file__).parent / "service" / "page"
FILES = sorted(PAGE.iterdir())
MAX_BYTES = 100_000


class Collector(HTMLParser):
    """Collects elements with their attributes, and the text inside script and style elements."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline = ""
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.inline += data


def test_the_page_has_the_elements_and_the_files_it_names_and_no_code_of_its_own() -> None:
    page = Collector()
    page.feed((PAGE / "index.html").read_text(encoding="utf-8"))
    assert page.inline.strip() == ""
    attributes = {name for _, attrs in page.elements for name in attrs}
    assert not [name for name in attributes if name == "style" or name.startswith("on")]
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    modules = "".join(path.read_text(encoding="utf-8") for path in FILES if path.suffix == ".js")
    assert set(re.findall(r'byId\("([a-z-]+)"\)', modules)) <= set(ids)
    # Every file that it names exists, and every file is used.
    named = {attrs.get("src") or attrs.get("href") for _, attrs in page.elements}
    files = {name.removeprefix("static/") for name in named if name and name.startswith("static/")}
    waiting = list(files)
    while waiting:
        source = (PAGE / waiting.pop()).read_text(encoding="utf-8")
        imports = set(re.findall(r'from "\./(.+?)"', source)) - files
        files |= imports
        waiting += imports
    assert files | {"index.html"} == {path.name for path in FILES}
    assert "(results/page.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    picture = (ROOT / "results" / "page.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and len(picture) < 300_000  # quick to load


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_names_no_outside_address_and_parses_no_markup(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", text)
    assert not re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert "@import" not in text and "url(" not in text
    assert len(text.splitlines()) <= 400 and len(text) < MAX_BYTES
