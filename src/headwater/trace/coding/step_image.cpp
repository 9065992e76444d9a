#include "headwater/trace/coding/step_image.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

namespace headwater::coding {
namespace {

/// Marks every access that an operator has; false when it had one already or is not there.
class Cover {
 public:
  explicit Cover(std::size_t num_accesses) : taken_(num_accesses, false) {}

  bool try_take(AccessRange range) {
    if (range.first > taken_.size() || range.count > taken_.size() - range.first) {
      return range.count == 0;
    }
    num_taken_ += range.count;
    for (std::uint32_t i = 0; i < range.count; ++i) {
      if (taken_[range.first + i]) {
        return false;
      }
      taken_[range.first + i] = true;
    }
    return true;
  }
  bool complete() const { return num_taken_ == taken_.size(); }

 private:
  std::vector<bool> taken_;
  std::size_t num_taken_ = 0;
};

void check(const StepTrace& trace) {
  Position last = 0;
  for (const Release& release : trace.releases) {
    if (release.before < last || release.before > trace.num_ops()) {
      throw InvalidArgument("Trace cannot be written. Record releases in order: one of step " +
                            std::to_string(trace.step.value()) + " stands before operator " +
                            std::to_string(release.before) + " of " +
                            std::to_string(trace.num_ops()));
    }
    last = release.before;
  }
  Cover cover(trace.accesses.size());
  const bool right = std::ranges::all_of(trace.ops, [&](const OpRecord& op) {
    return cover.try_take(op.uses) && cover.try_take(op.made);
  });
  if (!right || !cover.complete()) {
    throw InvalidArgument(
        "Trace cannot be written. Record every access with exactly one operator: step " +
        std::to_string(trace.step.value()));
  }
}

/// Goes through a trace from front to back.
class Taker {
 public:
  Taker(const StepTrace& trace, ShapeTable& shapes) : trace_(trace), shapes_(shapes) {
    image_.step = trace.step;
  }

  StepImage run() {
    for (Position position = 0; position < trace_.num_ops(); ++position) {
      add_releases(position);
      add_op(trace_.ops[position]);
      end_shape();
    }
    add_releases(trace_.num_ops());
    shape_.kind = OpShape::Kind::kEnd;
    end_shape();
    return std::move(image_);
  }

 private:
  void add_releases(Position position) {
    for (; next_release_ < trace_.releases.size(); ++next_release_) {
      const Release& release = trace_.releases[next_release_];
      if (release.before != position) {
        return;
      }
      add_slot({.bytes = release.bytes}, release.tensor);
      ++shape_.num_releases;
    }
  }

  void add_op(const OpRecord& op) {
    shape_.start = op.start;
    shape_.workspace_bytes = op.workspace_bytes;
    shape_.num_uses = op.uses.count;
    shape_.uses_placement = placement_of(op.uses, num_accesses_);
    shape_.made_placement = placement_of(op.made, op.uses.first + op.uses.count);
    num_accesses_ += op.uses.count + op.made.count;
    for (const AccessRange range : {op.uses, op.made}) {
      for (std::uint32_t i = 0; i < range.count; ++i) {
        const Access& access = trace_.accesses[range.first + i];
        add_slot({access.bytes, access.kind, access.packed}, access.tensor);
      }
    }
    image_.times_ns.push_back(op.time_ns);
  }

  void add_slot(const Slot& slot, TensorId tensor) {
    const auto [found, added] =
        ordinals_.try_emplace(tensor, static_cast<Ordinal>(image_.ids.size()));
    if (added) {
      image_.ids.push_back(tensor);
    }
    shape_.slots.push_back(slot);
    tensors_.push_back(found->second);
  }

  void end_shape() {
    image_.add(shapes_.number_of(shape_), tensors_);
    shape_ = {};
    tensors_.clear();
  }

  const StepTrace& trace_;
  ShapeTable& shapes_;
  StepImage image_;
  std::unordered_map<TensorId, Ordinal> ordinals_;
  std::size_t next_release_ = 0;
  std::uint32_t num_accesses_ = 0;
  // of the operator at hand
  OpShape shape_;
  std::vector<Ordinal> tensors_;
};

std::size_t count_accesses(const StepImage& image, const std::vector<OpShape>& shapes) {
  std::size_t count = 0;
  for (const ShapeNumber number : image.shapes) {
    count += shapes[number].slots.size() - shapes[number].num_releases;
  }
  return count;
}

/// Goes through an image from front to back.
class Putter {
 public:
  Putter(const StepImage& image, const std::vector<OpShape>& shapes)
      : image_(image), shapes_(shapes), cover_(count_accesses(image, shapes)) {
    trace_.step = image.step;
    trace_.ops.reserve(image.times_ns.size());
    trace_.accesses.resize(count_accesses(image, shapes));
  }

  std::optional<StepTrace> try_run() {
    for (Position position = 0; position < image_.num_shapes(); ++position) {
      const OpShape& shape = shapes_[image_.shapes[position]];
      for (std::uint32_t i = 0; i < shape.num_releases; ++i) {
        trace_.release(tensor(position, i), shape.slots[i].bytes);
      }
      if (shape.kind == OpShape::Kind::kOp && !try_put_op(shape, position)) {
        return std::nullopt;
      }
    }
    return std::move(trace_);
  }

 private:
  TensorId tensor(Position position, std::size_t slot) const {
    return image_.ids[image_.tensors_of(position)[slot]];
  }

  bool try_put_op(const OpShape& shape, Position position) {
    OpRecord op;
    op.start = shape.start;
    op.workspace_bytes = shape.workspace_bytes;
    op.time_ns = image_.times_ns[position];
    op.uses = {first_of(shape.uses_placement, num_accesses_), shape.num_uses};
    op.made = {first_of(shape.made_placement, op.uses.first + op.uses.count), shape.num_made()};
    trace_.ops.push_back(op);
    num_accesses_ += op.uses.count + op.made.count;
    return try_put(op.uses, position, shape.num_releases) &&
           try_put(op.made, position, shape.num_releases + shape.num_uses);
  }

  bool try_put(AccessRange range, Position position, std::size_t first_slot) {
    if (!cover_.try_take(range)) {
      return false;
    }
    const OpShape& shape = shapes_[image_.shapes[position]];
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const Slot& slot = shape.slots[first_slot + i];
      trace_.accesses[range.first + i] = {
          tensor(position, first_slot + i), slot.bytes, slot.kind, slot.packed};
    }
    return true;
  }

  const StepImage& image_;
  const std::vector<OpShape>& shapes_;
  StepTrace trace_;
  Cover cover_;
  std::uint32_t num_accesses_ = 0;
};

}  // namespace

void StepImage::add(ShapeNumber shape, std::span<const Ordinal> of_slots) {
  shapes.push_back(shape);
  tensors.insert(tensors.end(), of_slots.begin(), of_slots.end());
  first_tensor.push_back(tensors.size());
}

std::span<const Ordinal> StepImage::tensors_of(Position position) const {
  const std::size_t first = first_tensor[position];
  return std::span(tensors).subspan(first, first_tensor[position + 1] - first);
}

StepImage take_apart(const StepTrace& trace, ShapeTable& shapes) {
  check(trace);
  return Taker(trace, shapes).run();
}

std::optional<StepTrace> try_put_together(const StepImage& image,
                                          const std::vector<OpShape>& shapes) {
  return Putter(image, shapes).try_run();
}

}  // namespace headwater::coding
