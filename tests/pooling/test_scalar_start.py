"""How scalar attention is initialized: Xavier, or a Gaussian as generalized pooling's."""

import json

import pytest
import torch
from scipy import stats

from genpool import SentenceEncoder
from genpool.config import Part
from genpool.errors import InputError
from genpool.pooling import GeneralizedPooling, ScalarAttentionPooling


def values(pooling: GeneralizedPooling | ScalarAttentionPooling) -> list[torch.Tensor]:
    return [pooling.w1.detach().flatten(), pooling.w2.detach().flatten()]


def test_a_given_deviation_starts_both_matrices_as_that_gaussian():
    torch.manual_seed(0)
    for weights in values(ScalarAttentionPooling(60, heads=50, hidden_dim=50, initial_std=0.03)):
        assert stats.kstest(weights.double().numpy(), "norm", (0, 0.03)).pvalue > 0.01


def test_it_is_the_gaussian_of_generalized_pooling():
    torch.manual_seed(0)
    scalar = ScalarAttentionPooling(60, heads=50, hidden_dim=50, initial_std=0.01)
    general = GeneralizedPooling(60, heads=1, hidden_dim=50)
    pairs = zip(values(scalar), values(general), strict=True)
    for one, other in pairs:
        assert stats.ks_2samp(one.numpy(), other.numpy()).pvalue > 0.01


def test_without_a_deviation_the_start_is_xavier_uniform():
    torch.manual_seed(0)
    w1, w2 = values(ScalarAttentionPooling(60, heads=50, hidden_dim=50))
    for weights, fans in ((w1, 60 + 50), (w2, 50 + 50)):
        bound = (6 / fans) ** 0.5
        uniform = stats.kstest(weights.double().numpy(), "uniform", (-bound, 2 * bound))
        assert uniform.pvalue > 0.01


def test_the_start_is_drawn_again_by_reset_parameters():
    pooling = ScalarAttentionPooling(6, initial_std=0.0)
    with torch.no_grad():
        pooling.w1.add_(1)
    pooling.reset_parameters()
    assert not pooling.w1.any()


@pytest.mark.parametrize("std", [-0.1, float("inf"), float("nan"), True, "0.1"], ids=repr)
@pytest.mark.parametrize("cls", [ScalarAttentionPooling, GeneralizedPooling])
def test_a_deviation_that_is_none_is_refused(cls, std):
    with pytest.raises(InputError, match=r"initial_std is .*; expected a finite number of 0"):
        cls(4, initial_std=std)


def test_the_deviation_is_saved_and_loaded(make_encoder, tmp_path):
    pooling = Part("scalar", {"heads": 2, "hidden_dim": 4, "initial_std": 0.05})
    make_encoder(pooling).save_pretrained(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["settings"]["pooling"]["initial_std"] == 0.05
    assert SentenceEncoder.from_pretrained(tmp_path / "model").pooling.initial_std == 0.05


def test_a_folder_from_before_the_option_loads_with_the_same_vectors(make_encoder, tmp_path):
    model = make_encoder("scalar")
    model.save_pretrained(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    assert config["settings"]["pooling"].pop("initial_std") is None
    config.pop("checksums", None)  # nor had such a folder these
    path.write_text(json.dumps(config))
    loaded = SentenceEncoder.from_pretrained(tmp_path / "model")
    assert loaded.pooling.initial_std is None
    assert (loaded.encode(["the dog runs"]) == model.encode(["the dog runs"])).all()
