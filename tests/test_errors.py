"""The errors that genpool raises for a user's mistake."""

import pytest

from genpool.errors import GenpoolError, MissingExtraError, counted, require_extra


def test_a_missing_package_is_answered_with_the_pip_command_of_its_extra():
    with (
        pytest.raises(
            MissingExtraError, match=r"^reading Parquet .*'genpool\[parquet\]'$"
        ) as caught,
        require_extra("reading Parquet", "parquet"),
    ):
        import no_such_package_anywhere  # type: ignore[import-not-found]  # noqa: F401
    assert isinstance(caught.value, GenpoolError) and isinstance(caught.value, ImportError)
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_an_installed_package_that_fails_to_load_keeps_its_own_message():
    with (
        pytest.raises(ImportError, match="no_such_name") as caught,
        require_extra("reading Parquet", "parquet"),
    ):
        from json import no_such_name  # type: ignore[attr-defined]  # noqa: F401
    assert not isinstance(caught.value, MissingExtraError)


def test_numbers_have_the_right_form_of_their_noun() -> None:
    assert [counted(count, "row") for count in (1, 0, 2000)] == ["1 row", "0 rows", "2,000 rows"]
    assert counted(2, "process") == "2 processes"
