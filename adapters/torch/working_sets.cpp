#include "working_sets.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/core/enum_tag.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "dispatch_key.h"
#include "tensor_walk.h"
#include <bit>
#include <limits>
#include <unordered_set>
#include <utility>
#include <vector>

namespace headwater::adapter {
namespace {

at::Tensor without_bytes(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
    return tensor;
  }
  return at::detail::empty_strided_meta(tensor.sizes(), tensor.strides(), tensor.scalar_type());
}

c10::IValue without_bytes(const c10::IValue& value) {
  if (value.isTensor()) {
    return without_bytes(value.toTensor());
  }
  if (value.isDevice()) {
    return c10::Device(c10::kMeta);
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) {
      list.push_back(without_bytes(tensor));
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& element : value.toListRef()) {
      list.push_back(element.isTensor()
                         ? std::optional<at::Tensor>(without_bytes(element.toTensor()))
                         : std::nullopt);
    }
    return list;
  }
  return value;
}

void add_bytes(const c10::IValue& value,
               std::unordered_set<const c10::StorageImpl*>& seen,
               std::size_t& bytes) {
  for_each_storage(value, [&seen, &bytes](c10::StorageImpl& storage, Adoption) {
    if (seen.insert(&storage).second) {
      bytes += storage.nbytes();
    }
  });
}

/// Room made for an operator that has not been measured yet.
enum class Workspace : unsigned char {
  kNone,         // it works in its results
  kLikeTensors,  // about as much as it reads and writes
  kUnknown,      // may be anything: all the room there is, once
};

Workspace workspace_of(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  const bool library = name.find("convolution") != std::string::npos ||
                       name.find("_rnn") != std::string::npos ||
                       name.find("lstm") != std::string::npos;
  if (library) {
    return Workspace::kUnknown;
  }
  return op.hasTag(at::Tag::pointwise) ? Workspace::kNone : Workspace::kLikeTensors;
}

WorkingSets::Key mix(WorkingSets::Key key, std::uint64_t value) {
  key ^= value + 0x9e3779b97f4a7c15U + (key << 6) + (key >> 2);
  return key * 0xff51afd7ed558ccdU;
}

WorkingSets::Key mix_tensor(WorkingSets::Key key, const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return mix(key, 1);
  }
  key = mix(key, static_cast<std::uint64_t>(tensor.scalar_type()));
  if (tensor.layout() != c10::kStrided || tensor.unsafeGetTensorImpl()->is_python_dispatch()) {
    return key;
  }
  for (const std::int64_t size : tensor.sizes()) {
    key = mix(key, static_cast<std::uint64_t>(size));
  }
  return tensor.is_contiguous() ? key : mix(key, 2);
}

WorkingSets::Key mix_value(WorkingSets::Key key, const c10::IValue& value) {
  if (value.isTensor()) {
    return mix_tensor(key, value.toTensor());
  }
  if (value.isInt()) {
    return mix(key, static_cast<std::uint64_t>(value.toInt()));
  }
  if (value.isDouble()) {
    return mix(key, std::bit_cast<std::uint64_t>(value.toDouble()));
  }
  if (value.isString()) {
    return mix(key, std::hash<std::string>{}(value.toStringRef()));
  }
  if (value.isDevice()) {
    return mix(key, std::hash<c10::Device>{}(value.toDevice()));
  }
  if (value.isBool()) {
    return mix(key, value.toBool() ? 3 : 4);
  }
  if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      key = mix_value(key, element);
    }
  }
  return key;
}

}  // namespace

std::optional<std::size_t> output_bytes(const c10::OperatorHandle& op, Arguments arguments) {
  const c10::impl::ExcludeDispatchKeyGuard below(
      c10::autograd_dispatch_keyset | c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView) |
      c10::autocast_dispatch_keyset | c10::DispatchKeySet(kInterceptKey) | c10::python_ks |
      c10::DispatchKeySet(c10::DispatchKey::PythonTLSSnapshot));
  try {
    torch::jit::Stack stack;
    std::unordered_set<const c10::StorageImpl*> given;
    std::size_t ignored = 0;
    for (const c10::IValue& argument : arguments) {
      stack.push_back(without_bytes(argument));
      add_bytes(stack.back(), given, ignored);
    }
    const torch::jit::Stack keep = stack;
    op.callBoxed(&stack);
    std::size_t bytes = 0;
    for (const c10::IValue& result : stack) {
      add_bytes(result, given, bytes);
    }
    return bytes;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

WorkingSets::Key WorkingSets::key(const c10::OperatorHandle& op, Arguments arguments) {
  Key key = reinterpret_cast<std::uintptr_t>(&op.schema());
  for (const c10::IValue& argument : arguments) {
    key = mix_value(key, argument);
  }
  return key;
}

std::optional<NewBytes> WorkingSets::find(Key key) {
  const MutexLock lock(mutex_);
  const auto entry = known_.find(key);
  return entry == known_.end() ? std::nullopt : std::optional(entry->second);
}

NewBytes WorkingSets::predict(const c10::OperatorHandle& op, Arguments arguments) const {
  constexpr std::size_t kAllThereIs = std::numeric_limits<std::size_t>::max() / 4;
  const std::optional<std::size_t> outputs = output_bytes(op, arguments);
  const Workspace workspace = workspace_of(op);
  NewBytes bytes{.outputs = outputs.value_or(0), .total = outputs.value_or(0)};
  if (workspace == Workspace::kUnknown) {
    bytes.total = kAllThereIs;
  } else if (!outputs || workspace == Workspace::kLikeTensors) {
    std::unordered_set<const c10::StorageImpl*> seen;
    for (const c10::IValue& argument : arguments) {
      add_bytes(argument, seen, bytes.total);
    }
  }
  return bytes;
}

void WorkingSets::learn(Key key, NewBytes bytes) {
  constexpr std::size_t kMostKnown = 1 << 16;
  const MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) {
    known_.clear();
  }
  known_.insert_or_assign(key, bytes);
}

std::optional<AllocatorCount> WorkingSets::count() const {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device_.type()));
  if (allocator == nullptr) {
    return std::nullopt;
  }
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto bytes = allocator->getDeviceStats(device_.index()).allocated_bytes.at(kAll);
  return AllocatorCount{.now = static_cast<std::uint64_t>(bytes.current),
                        .so_far = static_cast<std::uint64_t>(bytes.allocated)};
}

}  // namespace headwater::adapter
