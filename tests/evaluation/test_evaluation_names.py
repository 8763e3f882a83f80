import subprocess
import sys

import genpool.evaluation as evaluation


def test_every_public_name_exists_and_is_listed_once():
    names = evaluation.__all__
    assert len(names) == len(set(names))
    assert all(getattr(evaluation, name) is not None for name in names)


def test_importing_the_folder_loads_none_of_the_heavy_packages():
    # In a process of its own: this one has loaded them for the tests.
    code = (
        "import sys, types, pathlib; package = types.ModuleType('genpool');"
        "package.__path__ = [sys.argv[1]]; sys.modules['genpool'] = package;"
        "import genpool.evaluation;"
        "print({'torch', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules))"
    )
    folder = str(evaluation.__path__[0]).removesuffix("evaluation")
    done = subprocess.run(
        [sys.executable, "-c", code, folder], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
