#pragma once

#include "op_traits.h"
#include "working_sets.h"

#include <ATen/core/Generator.h>
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
  std::shared_ptr<Origin> origin;  // of its storage; null: the storage that is being made
  c10::DispatchKeySet keys;
  caffe2::TypeMeta type;
  std::int64_t offset = 0;
  c10::SmallVector<std::int64_t, 5> sizes;
  c10::SmallVector<std::int64_t, 5> strides;

  at::Tensor over(c10::Storage storage) const;
};

/// One tensor of an argument: a picture, or the tensor itself where it is too small to be managed.
struct Part {
  at::Tensor kept;
  std::optional<Picture> picture;
};

/// An argument: parts where it carries tensors, a value otherwise.
struct Ingredient {
  enum class Kind : unsigned char { kValue, kTensor, kTensors, kOptionalTensors };

  Kind kind = Kind::kValue;
  c10::IValue value;
  c10::SmallVector<Part, 1> parts;
};

/// The numbers a generator was about to draw. Not a tensor: that would count towards a budget.
struct RandomState {
  at::Generator generator;
  std::vector<std::uint8_t> state;
};

/// Settings outside of the arguments that decide what an operator computes.
struct Settings {
  bool deterministic = false;
  bool deterministic_warn_only = false;
  bool cudnn = true;
  bool cudnn_benchmark = false;
  bool cudnn_deterministic = false;
  bool mkldnn = true;

  static Settings now();
  void put_in_force() const;

  bool operator==(const Settings&) const = default;
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

  torch::jit::Stack stack(Develop develop) const;
};

/// Whether a call can be run again with the same bits: it draws from a generator that can be put
/// back, adds up in a fixed order, and writes nothing but what it makes. Statistics that batch norm
/// keeps for later do not count, since they are left out when it runs again.
bool is_replayable(const OpTraits& traits, Arguments arguments);

/// The recipe of a call that is about to run, its pictures without their origins yet: `managed`
/// tells the tensors that get pictures. Nothing where a tensor cannot be put down.
std::shared_ptr<Recipe> write_down(const c10::OperatorHandle& op,
                                   const OpTraits& traits,
                                   c10::DispatchKeySet keys,
                                   Arguments arguments,
                                   c10::function_ref<bool(const at::Tensor&)> managed);

/// Puts settings and generators as they were when the recipe was written, and back at the end.
class AsItWas {
 public:
  explicit AsItWas(const Recipe& recipe);
  ~AsItWas();
  AsItWas(const AsItWas&) = delete;
  AsItWas& operator=(const AsItWas&) = delete;
  AsItWas(AsItWas&&) = delete;
  AsItWas& operator=(AsItWas&&) = delete;

 private:
  const Settings settings_;
  std::optional<RandomState> random_;
};

}  // namespace headwater::adapter
