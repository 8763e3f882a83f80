"""What holds for every encoder is tested for those of the reproduction too."""

from tests.reproduction.encoders import cases  # noqa: F401 - adds its cases to CASES
