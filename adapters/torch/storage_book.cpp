#include "storage_book.h"

#include "cache_lock.h"
#include "charging_allocator.h"
#include "headwater/base/check.h"
#include "lineage.h"

#include <ATen/Context.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

namespace headwater::adapter {
namespace {

std::atomic<TensorCache*> reporting_to{nullptr};
std::atomic<Lineage*> lineage_of_all{nullptr};
std::atomic<StorageBook::BringBack> bring_back_function{nullptr};
std::atomic<bool> readers_expected{false};

/// See Note [Moving the bytes of a storage].
void point_at(c10::DataPtr& pointer, void* address) {
  *reinterpret_cast<void**>(&pointer) = address;
}

void check_layout() {
  int first = 0;
  int second = 0;
  c10::DataPtr pointer(&first, c10::Device(c10::kCPU));
  point_at(pointer, &second);
  HEADWATER_CHECK(pointer.get() == &second);
}

template <class Storage>
concept CanGuardAccess = requires(Storage& storage) {
  storage.clear_data_ptr_access_error_msg_();
  storage.set_materializer(nullptr);
  storage.clear_materializer();
};

template <class Storage>
void allow_access(Storage& storage) {
  if constexpr (CanGuardAccess<Storage>) {
    storage.clear_data_ptr_access_error_msg_();
    storage.clear_materializer();
  }
}

/// Note [Reading bytes that are away]: C++ code that asks for the address of absent bytes outside
/// an operator gets an exception where PyTorch can take that back (since 2.13), and a null address
/// before. Once collectives or a profiler are in use, storages are not forbidden but materialized:
/// PyTorch's data-parallel code compares the pointers of gradients it does not read, and its
/// profilers write down those of all arguments, which must not throw; asking for an address to
/// write through brings the bytes back, to read through gives null.
template <class Storage>
void guard_access(Storage& storage) {
  if constexpr (CanGuardAccess<Storage>) {
    if (readers_expected.load(std::memory_order_relaxed)) {
      storage.set_materializer(
          [](c10::StorageImpl* absent) { bring_back_function.load()(*absent); });
    } else {
      storage.release_data_and_set_meta_custom_data_ptr_error_msg_(
          "Headwater has moved the bytes of this tensor off the device: something asked for their "
          "address outside an operator. Call headwater.hold(tensor) before.");
    }
  }
}

/// A reference to the storage, or null when it is being freed at this moment.
c10::intrusive_ptr<c10::StorageImpl> refer_to(c10::StorageImpl& storage) {
  auto weak = c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(&storage);
  c10::intrusive_ptr<c10::StorageImpl> alive = weak.lock();
  weak.release();
  return alive;
}

/// Beyond the address word only a storage that stays alive meanwhile may be touched: another thread
/// frees the parts of a dying one before it comes to our deleter.
template <class Storage>
void set_access(Storage& storage, bool allowed) {
  if constexpr (CanGuardAccess<Storage>) {
    if (c10::intrusive_ptr<c10::StorageImpl> alive = StorageBook::try_refer_to(storage)) {
      if (allowed) {
        allow_access(*alive);
      } else {
        guard_access(*alive);
      }
      drop_after_unlocking(std::move(alive));
    }
  }
}

std::vector<c10::DeleterFnPtr> deleters_of(c10::Allocator& allocator, c10::Device device) {
  std::vector<c10::DeleterFnPtr> deleters;
  if (const c10::DeleterFnPtr own = allocator.raw_deleter()) {
    deleters.push_back(own);
  }
  if (device.is_cpu()) {
    deleters.push_back(ChargingAllocator::deleter());
    // Storages made by hand ask it, whichever allocator stands in front.
    deleters.push_back(c10::GetDefaultCPUAllocator()->raw_deleter());
  }
  return deleters;
}

/// States of the CPU's generators are tensors, and generators read them without an operator.
std::size_t bytes_of_generator_state(c10::Device device) {
  return device.is_cpu() ? at::globalContext().defaultGenerator(device).get_state().nbytes() : 0;
}

}  // namespace

StorageBook::StorageBook(TorchMemory& memory, std::size_t min_tensor_bytes)
    : memory_(memory),
      min_tensor_bytes_(std::max<std::size_t>(min_tensor_bytes, 1)),
      generator_state_bytes_(bytes_of_generator_state(memory.device())),
      own_deleters_(deleters_of(memory.allocator(), memory.device())) {
  check_layout();
}

void StorageBook::set_reporting_to(TensorCache* cache, Lineage* lineage, BringBack bring_back) {
  reporting_to.store(cache);
  lineage_of_all.store(lineage);
  bring_back_function.store(bring_back);
  readers_expected.store(false);
}

void StorageBook::expect_readers(TensorCache& cache) {
  cache.mutex().assume_held();
  if (readers_expected.exchange(true)) {
    return;
  }
  for (const Tensor& tensor : cache.registry().absent()) {
    auto& storage = *static_cast<c10::StorageImpl*>(tensor.owner);
    set_access(storage, true);
    set_access(storage, false);
  }
}

void StorageBook::free_managed(void* context) {
  TensorCache& cache = *reporting_to.load();
  Lineage& lineage = *lineage_of_all.load();
  auto& tensor = *static_cast<Tensor*>(context);
  Buffer freed;
  const CacheLock lock(cache);
  if (!lineage.active() || !lineage.outlives(tensor, &free_managed)) {
    freed = cache.forget(tensor);
  }
}

c10::intrusive_ptr<c10::StorageImpl> StorageBook::try_refer_to(c10::StorageImpl& storage) {
  if (storage.pyobj_slot()->load_pyobj() != nullptr &&
      c10::raw::intrusive_ptr::use_count(&storage) <= 1) {
    return {};
  }
  return refer_to(storage);
}

Tensor* StorageBook::find_or_adopt(c10::StorageImpl& storage,
                                   TensorCache& cache,
                                   StreamRef stream) {
  if (Tensor* known = find(storage)) {
    return known;
  }
  const c10::DataPtr& pointer = storage._mutable_data_ptr_no_checks();
  if (pointer.get() == nullptr || pointer.device() != memory_.device() ||
      storage.nbytes() < min_tensor_bytes_ || storage.nbytes() == generator_state_bytes_) {
    return nullptr;
  }
  if (!adoptable(storage)) {
    note_unmanaged(storage);
    return nullptr;
  }
  const std::size_t bytes = storage.nbytes();
  c10::DataPtr& slot = storage._mutable_data_ptr_no_checks();
  void* address = slot.get();
  Reservation charge = ChargingAllocator::take_charge(slot);
  Buffer buffer = to_buffer(std::move(slot), bytes);
  Tensor& tensor = cache.adopt(std::move(buffer), std::move(charge), &storage, stream);
  slot = c10::DataPtr(address, &tensor, &free_managed, memory_.device());
  return &tensor;
}

void StorageBook::note_unmanaged(c10::StorageImpl& storage) {
  if (storage.device() != memory_.device()) {
    return;
  }
  const MutexLock lock(mutex_);
  if (unmanaged_.contains(&storage)) {
    return;
  }
  if (unmanaged_.size() >= prune_at_) {
    std::erase_if(unmanaged_, [](const auto& entry) { return entry.second.expired(); });
    prune_at_ = std::max(kLeastToPrune, 2 * unmanaged_.size());
  }
  c10::raw::weak_intrusive_ptr::incref(&storage);
  unmanaged_.emplace(&storage, c10::weak_intrusive_ptr<c10::StorageImpl>::reclaim(&storage));
}

std::size_t StorageBook::unmanaged_bytes() {
  const MutexLock lock(mutex_);
  std::erase_if(unmanaged_, [](const auto& entry) { return entry.second.expired(); });
  std::size_t bytes = 0;
  for (const auto& [storage, weak] : unmanaged_) {
    // One that has been adopted since, after PyTorch replaced its bytes, no longer counts.
    bytes += find(*storage) == nullptr ? storage->nbytes() : 0;
  }
  return bytes;
}

void StorageBook::on_move(const Tensor& tensor) noexcept {
  auto& storage = *static_cast<c10::StorageImpl*>(tensor.owner);
  point_at(storage._mutable_data_ptr_no_checks(), tensor.device.data());
  set_access(storage, static_cast<bool>(tensor.device));
}

bool StorageBook::on_return(const Tensor& tensor, Buffer& buffer) noexcept {
  auto* storage = static_cast<c10::StorageImpl*>(tensor.owner);
  c10::intrusive_ptr<c10::StorageImpl> alive = refer_to(*storage);
  if (!alive) {
    return false;
  }
  allow_access(*alive);
  drop_after_unlocking(alive);
  c10::DataPtr& slot = storage->_mutable_data_ptr_no_checks();
  if (tensor.num_holds > 0) {
    storage->set_resizable(false);  // a later session must leave the bytes where they are too
  }
  slot.release_context();
  slot = to_data_ptr(std::move(buffer), memory_.device());
  return true;
}

bool StorageBook::adoptable(const c10::StorageImpl& storage) const {
  const c10::DataPtr& pointer =
      const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
  // PyTorch marks a storage so once an array over its bytes has been handed out, and when it comes
  // from a file; in a session arrays are made over aliases, so there it can only be the latter.
  if (!storage.resizable() && !ChargingAllocator::made_in_this_session(pointer)) {
    return false;
  }
  return std::find(own_deleters_.begin(), own_deleters_.end(), pointer.get_deleter()) !=
         own_deleters_.end();
}

}  // namespace headwater::adapter
