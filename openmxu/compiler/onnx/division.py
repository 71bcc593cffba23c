"""The two ways to see a model: its batch as a batch, or one element of it after the other.

Usually every array between segments has a dimension for the batch, and all elements go through a segment together. Some
models fold the batch into other dimensions, compute with it, or have inputs with different first dimensions. Those are
seen as they are for one element, with fixed shapes and without a batch, and each segment of the device takes as its
batch what it finds in the first dimension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from openmxu.compiler.errors import CapacityError, CompileError, ModelError, UnsupportedOperatorError
from openmxu.compiler.ir.model import Model
from openmxu.compiler.onnx.graph_view import GraphView
from openmxu.compiler.onnx.model_file import opset_of
from openmxu.compiler.onnx.partition import Partition
from openmxu.compiler.onnx.shape_arithmetic import resolve_shapes
from openmxu.segments.array_spec import ArraySpec

if TYPE_CHECKING:
    import onnx

__all__ = ["Division"]


class Division:
    """A valid model, to be divided between device and host."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._proto = model
        self._failure: CompileError | None = None
        self._usual: Partition | None = None
        self._inputs: tuple[ArraySpec, ...] = ()
        try:
            view = GraphView.of(resolve_shapes(model).graph, opset_of(model))
            self._inputs = view.inputs if view.batch in (None, 1) else ()
            self._usual = Partition(view)
        except (ModelError, UnsupportedOperatorError) as error:
            self._failure = error
        self._whole: Partition | None = None

    def refuse(self, error: CapacityError) -> bool:
        """As :meth:`Partition.refuse`."""
        refused = [partition.refuse(error) for partition in (self._usual, self._whole) if partition is not None]
        return any(refused)

    def model(self, *, strict: bool = False) -> Model:
        """As :meth:`Partition.model`, whichever way leaves more to the device."""
        model = None
        if self._usual is not None:
            try:
                model = self._usual.model(strict=strict)
            except (ModelError, UnsupportedOperatorError) as error:
                self._failure = error
        is_tried = self._usual is None or model is None or self._usual.loses_batch
        whole = self._whole_model() if is_tried and not strict else None
        if whole is not None and (model is None or whole.host_work < model.host_work):
            return whole
        if model is None:
            assert self._failure is not None, "there is a model, or the reason why there is none"
            raise self._failure
        return model

    def _whole_model(self) -> Model | None:
        """The model for one element, ``None`` where that cannot be done either."""
        try:
            if self._whole is None:
                pinned = self._pinned()
                self._whole = Partition(GraphView.whole(resolve_shapes(pinned).graph, opset_of(pinned)))
            return self._by_element(self._whole.model())
        except (ModelError, UnsupportedOperatorError):
            return None

    def _pinned(self) -> onnx.ModelProto:
        """The model with a batch of 1 where it is open."""
        import onnx

        copy = onnx.ModelProto()
        copy.CopyFrom(self._proto)
        axes = {spec.name: spec.batch_axis for spec in self._inputs}
        for item in copy.graph.input:
            dims = item.type.tensor_type.shape.dim
            axis = axes.get(item.name, 0)
            if axis < len(dims) and dims[axis].dim_value < 1:
                dims[axis].dim_value = 1
        # What was inferred for an open batch would contradict it.
        del copy.graph.value_info[:]
        return copy

    def _by_element(self, model: Model) -> Model:
        """The model with the batch of its inputs and outputs outside of it, where all of them have one."""
        axes = {spec.name: spec.batch_axis for spec in self._inputs}
        names = {item.name: item.type.tensor_type.shape.dim for item in self._proto.graph.input}
        open_names = {names[name][axis].dim_param for name, axis in axes.items()} - {""}
        for item in self._proto.graph.output:
            dims = [dim.dim_param for dim in item.type.tensor_type.shape.dim]
            named = [axis for axis, name in enumerate(dims) if name in open_names]
            axes[item.name] = named[0] if named else 0
        specs = (*model.inputs, *model.outputs)
        if not self._inputs or any(spec.shape[axes[spec.name] :][:1] != (1,) for spec in specs):
            return model
        inputs = tuple(spec.with_batch(axes[spec.name]) for spec in model.inputs)
        outputs = tuple(spec.with_batch(axes[spec.name]) for spec in model.outputs)
        return Model(inputs, outputs, model.segments, by_element=True)
