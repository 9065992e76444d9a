#include "recipe.h"

#include "dispatch_key.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <ATen/ops/clone.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headwater::adapter {
namespace {

constexpr std::size_t kMostKeptBytes = std::size_t{16} << 10;  // of a tensor that is copied
constexpr std::size_t kTraining = 5;                           // argument of batch norm

/// Their kernels may add up in any order on a GPU, or keep what they need where nobody sees it.
constexpr std::array<std::string_view, 17> kUnsteady{"scatter",
                                                     "index_add",
                                                     "index_put",
                                                     "index_copy",
                                                     "kthvalue",
                                                     "median",
                                                     "index_reduce",
                                                     "aten::put",
                                                     "cumsum",
                                                     "cumprod",
                                                     "histc",
                                                     "bincount",
                                                     "_rnn",
                                                     "lstm",
                                                     "embedding_bag",
                                                     "ctc_loss",
                                                     "max_unpool"};

/// Whether an operator writes tensors, by its schema, and makes others.
bool writes_and_makes(const c10::OperatorHandle& op) {
  const auto is_written = [](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
  };
  const auto is_fresh = [](const c10::Argument& result) { return result.alias_info() == nullptr; };
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  const std::vector<c10::Argument>& results = op.schema().returns();
  return std::any_of(arguments.begin(), arguments.end(), is_written) &&
         std::any_of(results.begin(), results.end(), is_fresh);
}

bool forgets_statistics(const OpTraits& traits, Arguments arguments) {
  constexpr std::string_view kSuffix = "_batch_norm";
  return traits.name.ends_with(kSuffix) && traits.overload.empty() && traits.keeps_statistics &&
         arguments.size() > kTraining && arguments[kTraining].isBool() &&
         arguments[kTraining].toBool();
}

bool is_statistic(const OpTraits& traits, std::uint16_t index) {
  const auto entry = unmarked_writes().find(traits.name);
  return entry != unmarked_writes().end() &&
         std::find(entry->second.begin(), entry->second.end(), index) != entry->second.end();
}

/// A copy of a tensor that nobody manages: its own bytes may change unseen.
std::optional<at::Tensor> small_copy(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    return tensor;
  }
  const bool ordinary = tensor.layout() == at::kStrided && tensor.has_storage();
  if (!ordinary || tensor.nbytes() > kMostKeptBytes || !tensor.is_non_overlapping_and_dense()) {
    return std::nullopt;
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKeySet(kInterceptKey) |
                                                  c10::autocast_dispatch_keyset);
  return tensor.clone();
}

std::optional<Part> part_of(const at::Tensor& tensor,
                            c10::function_ref<bool(const at::Tensor&)> managed) {
  const bool number = tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
  if (!tensor.defined() || number || !managed(tensor)) {
    std::optional<at::Tensor> copy = small_copy(tensor);
    return copy ? std::optional(Part{.copy = *std::move(copy), .picture = {}}) : std::nullopt;
  }
  Picture picture{.origin = {},
                  .shape_only = false,
                  .device = tensor.device(),
                  .keys = tensor.key_set(),
                  .type = tensor.dtype(),
                  .offset = tensor.storage_offset(),
                  .sizes = {},
                  .strides = {}};
  picture.sizes.append(tensor.sizes().begin(), tensor.sizes().end());
  picture.strides.append(tensor.strides().begin(), tensor.strides().end());
  return Part{.copy = {}, .picture = std::move(picture)};
}

std::optional<Ingredient> ingredient_of(const c10::IValue& value,
                                        c10::function_ref<bool(const at::Tensor&)> managed) {
  using Kind = Ingredient::Kind;
  Ingredient ingredient;
  std::vector<at::Tensor> tensors;
  if (value.isTensor()) {
    ingredient.kind = Kind::kTensor;
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    ingredient.kind = Kind::kTensors;
    tensors = value.toTensorVector();
  } else if (value.isOptionalTensorList()) {
    ingredient.kind = Kind::kOptionalTensors;
    for (const c10::IValue& element : value.toListRef()) {
      tensors.push_back(element.isTensor() ? element.toTensor() : at::Tensor());
    }
  } else {
    ingredient.value = value;
  }
  for (const at::Tensor& tensor : tensors) {
    std::optional<Part> part = part_of(tensor, managed);
    if (!part) {
      return std::nullopt;
    }
    ingredient.parts.push_back(*std::move(part));
  }
  return ingredient;
}

/// False for containers that may hold bytes in some other way, and for tensors that are written
/// where nobody manages them.
bool can_be_put_down(const OpTraits& traits,
                     std::uint16_t index,
                     const c10::IValue& value,
                     c10::function_ref<bool(const at::Tensor&)> managed) {
  const TensorArgument* const found = traits.find(index);
  if (found == nullptr || value.isNone()) {
    return true;
  }
  if (found->access == AccessKind::kRead) {
    return value.isTensor() || value.isTensorList() || value.isOptionalTensorList();
  }
  return value.isTensor() && value.toTensor().defined() && managed(value.toTensor());
}

std::optional<at::Generator> generator_of(Arguments arguments, const OpTraits& traits) {
  for (const c10::IValue& argument : arguments) {
    if (argument.isGenerator()) {
      return argument.toGenerator();
    }
  }
  for (const TensorArgument& argument : traits.tensors) {
    if (arguments[argument.index].isTensor() && arguments[argument.index].toTensor().defined()) {
      return at::globalContext().defaultGenerator(arguments[argument.index].toTensor().device());
    }
  }
  return std::nullopt;
}

c10::Storage without_bytes(c10::Device device) {
  return c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(),
                                               0,
                                               c10::DataPtr(nullptr, device),
                                               /*allocator=*/nullptr,
                                               /*resizable=*/false);
}

at::Tensor tensor_of(const Part& part, Recipe::Develop develop) {
  if (!part.picture) {
    return part.copy;
  }
  const Picture& picture = *part.picture;
  return picture.over(picture.shape_only ? without_bytes(picture.device) : develop(picture));
}

c10::IValue value_of(const Ingredient& argument, Recipe::Develop develop) {
  using Kind = Ingredient::Kind;
  if (argument.kind == Kind::kValue) {
    return argument.value;
  }
  if (argument.kind == Kind::kTensor) {
    return tensor_of(argument.parts.front(), develop);
  }
  c10::List<at::Tensor> list;
  c10::List<std::optional<at::Tensor>> optional_list;
  for (const Part& part : argument.parts) {
    at::Tensor tensor = tensor_of(part, develop);
    if (argument.kind == Kind::kTensors) {
      list.push_back(std::move(tensor));
    } else {
      optional_list.push_back(tensor.defined() ? std::optional(std::move(tensor)) : std::nullopt);
    }
  }
  return argument.kind == Kind::kTensors ? c10::IValue(std::move(list))
                                         : c10::IValue(std::move(optional_list));
}

void keep_shapes_only(Ingredient& ingredient) {
  for (Part& part : ingredient.parts) {
    if (part.picture) {
      part.picture->shape_only = true;
    }
  }
}

}  // namespace

at::Tensor Picture::over(c10::Storage storage) const {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, type);
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_storage_offset(offset);
  impl->set_sizes_and_strides(sizes, strides);
  return tensor;
}

torch::jit::Stack Recipe::stack(Develop develop) const {
  torch::jit::Stack stack;
  for (const Ingredient& argument : arguments) {
    stack.push_back(value_of(argument, develop));
  }
  return stack;
}

Replay replay_of(const c10::OperatorHandle& op, const OpTraits& traits) {
  const auto in_name = [&traits](std::string_view part) {
    return traits.name.find(part) != std::string::npos;
  };
  if (traits.path != OpPath::kManage || !traits.name.starts_with("aten::") ||
      std::any_of(kUnsteady.begin(), kUnsteady.end(), in_name) || writes_and_makes(op)) {
    return Replay::kRefused;
  }
  return op.hasTag(at::Tag::nondeterministic_seeded) ? Replay::kSeeded : Replay::kExact;
}

Replay replay_of(const OpTraits& traits, Arguments arguments) {
  // Batch norm in evaluation reads the statistics, which its table has as written.
  const bool refused = traits.keeps_statistics && !forgets_statistics(traits, arguments);
  return refused ? Replay::kRefused : traits.replay;
}

std::shared_ptr<Recipe> write_down(const Call& call,
                                   c10::function_ref<bool(const at::Tensor&)> managed) {
  const bool forgets = forgets_statistics(call.traits, call.arguments);
  auto recipe =
      std::make_shared<Recipe>(Recipe{call.op, call.keys, {}, {}, Settings::now(), call.stream});
  for (std::uint16_t i = 0; i < call.arguments.size(); ++i) {
    const bool left_out = forgets && is_statistic(call.traits, i);
    const c10::IValue& given = call.arguments[i];
    if (!left_out && !can_be_put_down(call.traits, i, given, managed)) {
      return nullptr;
    }
    std::optional<Ingredient> ingredient =
        ingredient_of(left_out ? c10::IValue(at::Tensor()) : given, managed);
    if (!ingredient) {
      return nullptr;
    }
    if (call.traits.find(i) == nullptr) {
      keep_shapes_only(*ingredient);
    }
    recipe->arguments.push_back(*std::move(ingredient));
  }
  if (call.op.hasTag(at::Tag::nondeterministic_seeded)) {
    std::optional<at::Generator> generator = generator_of(call.arguments, call.traits);
    if (!generator) {
      return nullptr;
    }
    recipe->random = random_state(*std::move(generator));
  }
  return recipe;
}

}  // namespace headwater::adapter
