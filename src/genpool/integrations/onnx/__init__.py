"""Models as ONNX graphs for onnxruntime: token ids in, sentence vectors out.

>>> from genpool.integrations.onnx import OnnxEncoder, export
>>> export(model, "my-model-onnx")                # compared with PyTorch before it is kept
>>> OnnxEncoder.from_pretrained("my-model-onnx").encode(["A man sleeps."])

Needs the extra `onnx`: pip install 'genpool[onnx]'
"""

from genpool.integrations.onnx.exporting import export, export_transformer
from genpool.integrations.onnx.graph import Export, ExportError
from genpool.integrations.onnx.onnx_encoder import OnnxEncoder

__all__ = ["Export", "ExportError", "OnnxEncoder", "export", "export_transformer"]
