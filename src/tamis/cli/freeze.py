"""`tamis freeze`: a saved model as a plain scikit-learn pipeline, or as an ONNX graph, for a service that predicts."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tamis.cli.failure import MisuseError
from tamis.cli.options import OUTPUT, AsJSON, Force, Quiet, command
from tamis.cli.output import check_outputs, print_json, write_output
from tamis.errors import DataError


@command(panel="Evaluation")
def freeze(
    model: Annotated[str, typer.Argument()],
    out: Annotated[str | None, OUTPUT] = None,
    onnx: Annotated[str | None, OUTPUT] = None,
    force: Force = False,
    as_json: AsJSON = False,
    quiet: Quiet = False,
) -> None:
    """Export a saved model for a service that only predicts.

    Parameters
    ----------
    model : MODEL
        A file that --save of tamis run wrote, or tamis.save.
    out : FILE
        Write a scikit-learn pipeline of columns, scaler and learner with joblib. Whoever loads it needs scikit-learn
        only, and must trust the file.
    onnx : FILE
        Write an ONNX graph; needs the extra onnx.

    Examples
    --------
    `tamis freeze model.tamis --out model.joblib`

    `tamis freeze model.tamis --onnx model.onnx`
    """
    if out is None and onnx is None:
        raise MisuseError("Nothing is written: pass --out FILE, --onnx FILE, or both.")
    check_outputs([model], {"--out": out, "--onnx": onnx}, force=force)
    import tamis
    from tamis.pipeline.freezing import to_onnx

    content: Any = tamis.load(model)
    content = content.get("pipeline") if isinstance(content, dict) else content
    if content is None:
        raise DataError(f"{model} contains no pipeline: save one with tamis run --save.")
    frozen = tamis.freeze(content)
    if out is not None:
        import joblib

        write_output(out, lambda file: joblib.dump(frozen, file))
    if onnx is not None:
        graph = to_onnx(content).SerializeToString()
        write_output(onnx, lambda file: file.write(graph))
    steps = [type(step).__name__ for _, step in frozen.steps]
    written = [place for place in (out, onnx) if place is not None]
    if as_json:
        print_json({"steps": steps, "written": written})
    else:
        print(f"{' and '.join(written)}: {', '.join(steps)}.")
