#pragma once

#include "headwater/trace/coding/op_shape.h"
#include "headwater/trace/liveness.h"
#include "headwater/trace/step_trace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace headwater::coding {

/// A step taken apart into what recurs and what does not: the shapes of its operators, and columns
/// for the rest. Tensors are numbered by first appearance, the releases before an operator first,
/// so that steps that repeat have equal numbers though their ids differ.
struct StepImage {
  StepId step;
  std::vector<ShapeNumber> shapes;        // one an operator, and the end of the step
  std::vector<std::size_t> first_tensor;  // one a shape, and the end
  std::vector<Ordinal> tensors;           // one a slot of each shape
  std::vector<TensorId> ids;              // one an ordinal
  std::vector<std::uint64_t> times_ns;    // one an operator

  StepImage() : first_tensor{0} {}

  void add(ShapeNumber shape, std::span<const Ordinal> of_slots);
  std::span<const Ordinal> tensors_of(Position position) const;
  Position num_shapes() const { return static_cast<Position>(shapes.size()); }
  bool operator==(const StepImage&) const = default;
};

/// Throws InvalidArgument for a trace that no recorder writes: releases out of order, accesses that
/// belong to no operator or to two.
StepImage take_apart(const StepTrace& trace, ShapeTable& shapes);
/// The trace that was taken apart. Nothing where the shapes place accesses outside of the step or
/// two of them at one place.
[[nodiscard]] std::optional<StepTrace> try_put_together(const StepImage& image,
                                                        const std::vector<OpShape>& shapes);

}  // namespace headwater::coding
