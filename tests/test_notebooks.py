"""The notebooks of the documentation: executed again, they print what they show, pictures included."""

import copy

import pytest

from tests.test_house import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def shown(notebook):
    """Return the text of each output, and whether it is a picture too."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert all(output.output_type in ("execute_result", "display_data") for output in outputs)
    return [(output.data["text/plain"], "image/png" in output.data) for output in outputs]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_return(path):
    nbclient = pytest.importorskip("nbclient", reason="no nbclient: pip install 'tamis[dev]'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="no ipykernel: pip install 'tamis[dev]'")
    stored = nbformat.read(path, as_version=4)
    executed = copy.deepcopy(stored)
    nbclient.NotebookClient(executed, timeout=300, kernel_name="python3").execute()
    assert shown(executed) == shown(stored), (
        "run `python -m nbconvert --to notebook --execute --inplace "
        f"--ExecutePreprocessor.record_timing=False {path}`"
    )
    assert any(is_picture for _, is_picture in shown(stored))
