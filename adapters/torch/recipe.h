#pragma once

#include "as_it_was.h"
#include "op_traits.h"
#include "working_sets.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/util/FunctionRef.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace headwater::adapter {

struct Origin;

/// A tensor that an operator was given, without its bytes.
struct Picture {
  std::shared_ptr<Origin> origin;  // of its storage; null: the storage that is being made, or
  bool shape_only = false;         // none, since nothing but its shape is read
  c10::Device device = c10::kCPU;
  c10::DispatchKeySet keys;
  caffe2::TypeMeta type;
  std::int64_t offset = 0;
  c10::SmallVector<std::int64_t, 5> sizes;
  c10::SmallVector<std::int64_t, 5> strides;

  at::Tensor over(c10::Storage storage) const;
};

/// One tensor of an argument: a picture, or a copy where it is too small to be managed.
struct Part {
  at::Tensor copy;
  std::optional<Picture> picture;
};

/// An argument: parts where it carries tensors, a value otherwise.
struct Ingredient {
  enum class Kind : unsigned char { kValue, kTensor, kTensors, kOptionalTensors };

  Kind kind = Kind::kValue;
  c10::IValue value;
  c10::SmallVector<Part, 1> parts;
};

/// All that it takes to run one call of an operator again with the same bits.
struct Recipe {
  /// Gives a storage for a picture.
  using Develop = c10::function_ref<c10::Storage(const Picture&)>;

  c10::OperatorHandle op;
  c10::DispatchKeySet keys;
  std::vector<Ingredient> arguments;
  std::optional<RandomState> random;
  Settings settings;
  StreamRef stream = kDefaultStream;  // whose order its copies were made in
  bool overwrites = false;            // what it writes in place, whatever was there

  torch::jit::Stack stack(Develop develop) const;
  /// Whether it puts into a storage what it reads elsewhere or draws: more than a number.
  /// REQUIRES: its pictures have their origins.
  bool fills() const;
};

/// A call that is about to run.
struct Call {
  const c10::OperatorHandle& op;
  const OpTraits& traits;
  c10::DispatchKeySet keys;
  Arguments arguments;
  StreamRef stream = kDefaultStream;
};

/// Its recipe, with pictures of the tensors that are `managed`, without their origins yet. Nothing
/// where a tensor cannot be put down, or one is written that is not managed.
std::shared_ptr<Recipe> write_down(const Call& call,
                                   c10::function_ref<bool(const at::Tensor&)> managed);

}  // namespace headwater::adapter
