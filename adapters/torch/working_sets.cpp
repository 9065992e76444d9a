#include "working_sets.h"

#include "dispatch_key.h"
#include "tensor_walk.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

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

std::optional<NewBytes> WorkingSets::find(OpKey key) {
  const MutexLock lock(mutex_);
  const auto entry = known_.find(key);
  return entry == known_.end() ? std::nullopt : std::optional(entry->second);
}

NewBytes WorkingSets::predict(const c10::OperatorHandle& op,
                              const OpTraits& traits,
                              Arguments arguments,
                              std::size_t room) const {
  constexpr std::size_t kAllThereIs = std::numeric_limits<std::size_t>::max() / 4;
  constexpr std::size_t kLibraryBytes = std::size_t{512}
                                        << 20;  // more than workspaces tend to take
  constexpr std::size_t kLibraryTimes = 8;
  const std::optional<std::size_t> outputs = output_bytes(op, arguments);
  std::unordered_set<const c10::StorageImpl*> seen;
  std::size_t given = 0;
  for (const c10::IValue& argument : arguments) {
    add_bytes(argument, seen, given);
  }
  NewBytes bytes{.outputs = outputs.value_or(0), .total = outputs.value_or(0)};
  if (is_unknown(traits.workspace)) {
    bytes.total += kLibraryTimes * given + kLibraryBytes;
    bytes.total = bytes.total <= room ? bytes.total : kAllThereIs;
  } else if (!outputs || traits.workspace != Workspace::kNone) {
    bytes.total += given;
  }
  return bytes;
}

void WorkingSets::learn(OpKey key, const OpTraits& traits, NewBytes bytes) {
  constexpr std::size_t kMostKnown = 1 << 16;
  if (traits.workspace == Workspace::kFirstTime && !library_is_set_up_.exchange(true)) {
    return;  // what the library keeps is not allocated again
  }
  const MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) {
    known_.clear();
  }
  known_.insert_or_assign(key, bytes);
}

bool WorkingSets::is_unknown(Workspace workspace) const {
  return workspace == Workspace::kUnknown ||
         (workspace == Workspace::kFirstTime && !library_is_set_up_.load());
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
