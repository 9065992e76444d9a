#include "recipe.h"

#include "dispatch_key.h"
#include "exactness.h"

#include <ATen/Context.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/ops/clone.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace headwater::adapter {
namespace {

constexpr std::size_t kMostKeptBytes = std::size_t{16} << 10;  // of a tensor that is copied
constexpr std::uintptr_t kAlignment = 256;                     // the most that cuBLASLt is told of

bool is_number(const at::Tensor& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

bool is_ordinary(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.has_storage();
}

/// Whether kernels treat it as they would a copy. On a GPU they choose by alignment, which all have
/// that begin an allocation; a slice may not.
bool is_aligned(const at::Tensor& tensor) {
  return !tensor.is_cuda() ||
         reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % kAlignment == 0;
}

/// A copy of a tensor that nobody manages: its own bytes may change unseen.
std::optional<at::Tensor> small_copy(const at::Tensor& tensor) {
  if (!tensor.defined() || is_number(tensor)) {
    return tensor;
  }
  if (!is_ordinary(tensor) || tensor.nbytes() > kMostKeptBytes ||
      !tensor.is_non_overlapping_and_dense() || !is_aligned(tensor)) {
    return std::nullopt;
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKeySet(kInterceptKey) |
                                                  c10::autocast_dispatch_keyset);
  return tensor.clone();
}

std::optional<Part> part_of(const at::Tensor& tensor,
                            c10::function_ref<bool(const at::Tensor&)> managed) {
  if (!tensor.defined() || is_number(tensor) || !managed(tensor)) {
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
  c10::SmallVector<at::Tensor, 1> tensors;
  if (value.isTensor()) {
    ingredient.kind = Kind::kTensor;
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    ingredient.kind = Kind::kTensors;
    for (const c10::IValue& element : value.toListRef()) {
      tensors.push_back(element.toTensor());
    }
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

void keep_shapes_only(Ingredient& ingredient) {
  for (Part& part : ingredient.parts) {
    if (part.picture) {
      part.picture->shape_only = true;
    }
  }
}

std::optional<Ingredient> put_down(const Call& call,
                                   std::uint16_t index,
                                   c10::function_ref<bool(const at::Tensor&)> managed) {
  const c10::IValue& given = call.arguments[index];
  if (forgets_statistics(call.traits, call.arguments) && is_statistic(call.traits, index)) {
    return ingredient_of(at::Tensor(), managed);
  }
  if (!can_be_put_down(call.traits, index, given, managed)) {
    return std::nullopt;
  }
  if (call.traits.find(index) != nullptr) {
    return ingredient_of(given, managed);
  }
  std::optional<Ingredient> ingredient = ingredient_of(given, is_ordinary);
  if (ingredient) {
    keep_shapes_only(*ingredient);
  }
  return ingredient;
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

bool Recipe::fills() const {
  const auto is_read = [](const Part& part) {
    return part.picture ? part.picture->origin != nullptr
                        : part.copy.defined() && !is_number(part.copy);
  };
  return random || std::any_of(arguments.begin(), arguments.end(), [&](const Ingredient& argument) {
           return std::any_of(argument.parts.begin(), argument.parts.end(), is_read);
         });
}

std::shared_ptr<Recipe> write_down(const Call& call,
                                   c10::function_ref<bool(const at::Tensor&)> managed) {
  auto recipe = std::make_shared<Recipe>(
      Recipe{call.op, call.keys, {}, {}, Settings::now(), call.stream, overwrites(call.traits)});
  recipe->arguments.reserve(call.arguments.size());
  for (std::uint16_t i = 0; i < call.arguments.size(); ++i) {
    std::optional<Ingredient> ingredient = put_down(call, i, managed);
    if (!ingredient) {
      return nullptr;
    }
    recipe->arguments.push_back(*std::move(ingredient));
  }
  if (draws(call.traits, call.arguments)) {
    std::optional<at::Generator> generator = generator_of(call.arguments, call.traits);
    if (!generator) {
      return nullptr;
    }
    recipe->random = random_state(*std::move(generator));
  }
  return recipe;
}

}  // namespace headwater::adapter
