"""Our docstrings say "Example:", the reference's parser of Google's style knows "Examples:"."""

from __future__ import annotations

import re
from typing import Any

import griffe


class ExampleSections(griffe.Extension):
    """Renames the section before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            value = obj.docstring.value
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", value, flags=re.M)
            if obj.is_module:  # its example is a guide's
                obj.docstring.value = value.partition(">>>")[0]
