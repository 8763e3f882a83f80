"""Hub data sets by name, with a stand-in for the `datasets` package: no network is needed."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from genpool.data import Example, HubReader
from genpool.errors import DataError, MissingExtraError

NAMES = ["entailment", "neutral", "contradiction"]
ROWS = [
    {"premise": "a", "hypothesis": "b", "label": 2},
    {"premise": "c", "hypothesis": "d", "label": -1},
    {"premise": "e", "hypothesis": "f", "label": 0},
]


class Stream(list):
    """A streamed data set: rows, and the features that describe their columns."""

    features = None


class Hub(ModuleType):
    """Answers as `datasets` does, and remembers what it was asked."""

    def __init__(self, splits, features=None):
        super().__init__("datasets")
        self.asked, self.splits, self.features = [], splits, features

    def get_dataset_split_names(self, name, config=None, *, revision=None):
        if name == "no/such":
            raise FileNotFoundError("Dataset 'no/such' doesn't exist on the Hub")
        return list(self.splits)

    def load_dataset(self, name, config=None, *, split, streaming, revision=None):
        self.asked.append((name, config, split, streaming, revision))
        rows = Stream(self.splits[split])
        rows.features = self.features
        return rows


@pytest.fixture
def hub(monkeypatch):
    features = {"label": SimpleNamespace(names=NAMES)}
    hub = Hub({"train": ROWS, "validation_matched": ROWS[:1], "test": ROWS[1:2]}, features)
    monkeypatch.setitem(sys.modules, "datasets", hub)
    return hub


def test_classes_become_their_names_and_rows_without_one_are_dropped(hub):
    reader = HubReader("stanfordnlp/snli")
    assert list(reader.read("train")) == [
        Example("contradiction", "a", "b"),
        Example("entailment", "e", "f"),
    ]
    assert reader.skipped == {"no gold label": 1}
    assert (reader.labels, reader.is_pair) == (tuple(NAMES), True)
    assert list(HubReader("x/y", labelled=False).read("test")) == [Example(None, "c", "d")]


def test_validation_is_called_dev(hub):
    reader = HubReader("nyu-mll/multi_nli", config="plain", revision="abc")
    assert reader.splits() == ["train", "dev_matched", "test"]
    assert len(list(reader.read("dev_matched"))) == 1
    assert ("nyu-mll/multi_nli", "plain", "validation_matched", True, "abc") in hub.asked


def test_text_labels_without_declared_classes_are_taken_as_they_are(hub):
    hub.features = None
    hub.splits = {"train": [{"text": "a", "label": "good"}]}
    reader = HubReader("x/y")
    assert list(reader.read("train")) == [Example("good", "a")]
    assert (reader.labels, reader.is_pair) == (None, False)


def test_what_the_hub_refuses_or_cannot_have_is_a_data_error(hub):
    with pytest.raises(DataError, match=r"no/such: cannot be read from the hub: .*doesn't exist"):
        HubReader("no/such").read("train")
    hub.splits = {"train": [{"premise": "a", "hypothesis": "b", "label": 7}]}
    with pytest.raises(DataError, match="x/y, line 1: unknown label '7'"):
        list(HubReader("x/y").read("train"))

    class Broken:
        features = None

        def __iter__(self):
            yield ROWS[0]
            raise ConnectionError("reset by peer")

    hub.load_dataset = lambda *given, **options: Broken()
    with pytest.raises(DataError, match="the connection to the hub was lost: reset by peer"):
        list(HubReader("x/y").read("train"))


def test_without_the_package_the_pip_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'genpool\[datasets\]'"):
        HubReader("stanfordnlp/snli")
