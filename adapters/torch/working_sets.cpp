#include "working_sets.h"

#include "dispatch_key.h"
#include "serial.h"
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

/// The working sets whose first product has run on this thread: a library is set up, and keeps
/// workspaces, for each.
thread_local std::uint64_t set_up_for = 0;

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

WorkingSets::WorkingSets(c10::Device device) : device_(device), serial_(next_serial()) {}

std::optional<NewBytes> WorkingSets::find(OpKey key) {
  const MutexLock lock(mutex_);
  const auto entry = known_.find(key);
  return entry == known_.end() ? std::nullopt : std::optional(entry->second);
}

NewBytes WorkingSets::predict(const c10::OperatorHandle& op,
                              const OpTraits& traits,
                              Arguments arguments,
                              std::size_t room) {
  constexpr std::size_t kAllThereIs = std::numeric_limits<std::size_t>::max() / 4;
  const std::optional<std::size_t> outputs = output_bytes(op, arguments);
  std::unordered_set<const c10::StorageImpl*> seen;
  std::size_t given = 0;
  for (const c10::IValue& argument : arguments) {
    add_bytes(argument, seen, given);
  }
  NewBytes bytes{.given = given, .outputs = outputs.value_or(0), .total = outputs.value_or(0)};
  if (is_unknown(traits.workspace)) {
    bytes.total += most_workspace(traits.workspace, given);
    bytes.total = bytes.total <= room ? bytes.total : kAllThereIs;
  } else if (!outputs || traits.workspace != Workspace::kNone) {
    bytes.total += predict_workspace(traits, given);
  }
  return bytes;
}

std::size_t WorkingSets::predict_workspace(const OpTraits& traits, std::size_t given) {
  constexpr std::size_t kBytesIfNeverRun = std::size_t{32} << 20;
  const MutexLock lock(mutex_);
  const auto entry = measured_.find(traits.name);
  if (entry == measured_.end()) {
    return kUsualTimes * given + kBytesIfNeverRun;
  }
  const Measured& most = entry->second;
  const double scaled = std::max(most.for_each_given, 1.0) * static_cast<double>(given);
  return most.on_little + static_cast<std::size_t>(scaled);
}

void WorkingSets::learn(OpKey key, const OpTraits& traits, NewBytes bytes) {
  constexpr std::size_t kMostKnown = 1 << 16;
  if (traits.workspace == Workspace::kFirstTime && std::exchange(set_up_for, serial_) != serial_) {
    return;  // what the library keeps is not allocated again
  }
  const MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) {
    known_.clear();
  }
  known_.insert_or_assign(key, bytes);
  Measured& most = measured_[traits.name];
  if (bytes.given < kLittle) {
    most.on_little = std::max(most.on_little, bytes.workspace());
  } else {
    const double ratio = static_cast<double>(bytes.workspace()) / static_cast<double>(bytes.given);
    most.for_each_given = std::max(most.for_each_given, ratio);
  }
}

bool WorkingSets::is_unknown(Workspace workspace) const {
  return workspace == Workspace::kUnknown ||
         (workspace == Workspace::kFirstTime && set_up_for != serial_);
}

std::size_t WorkingSets::most_workspace(Workspace workspace, std::size_t given) const {
  if (workspace == Workspace::kNone) {
    return 0;
  }
  return is_unknown(workspace) ? kLibraryTimes * given + kLibraryBytes : kUsualTimes * given;
}

std::optional<AllocatorCount> WorkingSets::count() const {
  auto* allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device_.type()));
  if (allocator == nullptr) {
    return std::nullopt;
  }
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto stats = allocator->getDeviceStats(device_.index());
  const auto& bytes = stats.allocated_bytes.at(kAll);
  return AllocatorCount{
      .now = static_cast<std::uint64_t>(bytes.current),
      .so_far = static_cast<std::uint64_t>(bytes.allocated),
      .peak = static_cast<std::uint64_t>(bytes.peak),
      .taken = static_cast<std::uint64_t>(stats.reserved_bytes.at(kAll).current),
      .refusals = {.num_retries = static_cast<std::uint64_t>(stats.num_alloc_retries),
                   .num_failures = static_cast<std::uint64_t>(stats.num_ooms)}};
}

}  // namespace headwater::adapter
