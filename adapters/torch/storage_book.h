#pragma once

#include "headwater/offload/move_listener.h"
#include "headwater/offload/tensor_cache.h"
#include "torch_memory.h"

#include <c10/core/StorageImpl.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

namespace headwater::adapter {

class Lineage;

/// Ties storages to tensors: a managed storage's data pointer carries the tensor as its context
/// and our function as its deleter, so the tensor is found in O(1) and every free is heard of.
///
/// Note [Moving the bytes of a storage]: only the address word of the data pointer changes when
/// bytes move; context and deleter stay. Another thread may be dropping the last reference at the
/// same time: it then waits for the cache's mutex inside our deleter, before it touches the
/// address word again, so a single store under that mutex is safe where a swap of the whole
/// pointer would not be.
class StorageBook final : public MoveListener {
 public:
  StorageBook(TorchMemory& memory, std::size_t min_tensor_bytes);

  using BringBack = void (*)(c10::StorageImpl& absent);

  /// The cache and the lineage that deleters report to, and how absent bytes that somebody asks for
  /// come back; the storages of one session at a time are managed.
  static void set_reporting_to(TensorCache* cache, Lineage* lineage, BringBack bring_back);
  /// See Note [Reading bytes that are away].
  static void expect_readers(TensorCache& cache) HEADWATER_REQUIRES(cache.mutex());

  static Tensor* find(const c10::StorageImpl& storage) {
    const c10::DataPtr& pointer =
        const_cast<c10::StorageImpl&>(storage)._mutable_data_ptr_no_checks();
    return pointer.get_deleter() == &free_managed ? static_cast<Tensor*>(pointer.get_context())
                                                  : nullptr;
  }
  /// A reference to a storage that may be freed at this moment: null then, and also when only its
  /// Python wrapper refers to it, since another reference would need the interpreter lock.
  static c10::intrusive_ptr<c10::StorageImpl> try_refer_to(c10::StorageImpl& storage);
  /// Adopts the storage at first sight when its bytes came from the device's own allocator.
  /// Null when it is left alone.
  Tensor* find_or_adopt(c10::StorageImpl& storage, TensorCache& cache, StreamRef stream)
      HEADWATER_REQUIRES(cache.mutex());
  /// Counts a storage whose bytes we cannot move.
  void note_unmanaged(c10::StorageImpl& storage);
  /// Bytes of the unmanaged storages that are alive.
  std::size_t unmanaged_bytes();

  void on_move(const Tensor& tensor) noexcept override;
  bool on_return(const Tensor& tensor, Buffer& buffer) noexcept override;

 private:
  static constexpr std::size_t kLeastToPrune = 1024;

  /// Deleter of managed storages.
  static void free_managed(void* context);
  bool adoptable(const c10::StorageImpl& storage) const;

  TorchMemory& memory_;
  const std::size_t min_tensor_bytes_;
  const std::size_t generator_state_bytes_;  // tensors of that size are left alone; 0: none
  const std::vector<c10::DeleterFnPtr> own_deleters_;
  Mutex mutex_;
  std::size_t prune_at_ HEADWATER_GUARDED_BY(mutex_) = kLeastToPrune;
  std::unordered_map<c10::StorageImpl*, c10::weak_intrusive_ptr<c10::StorageImpl>> unmanaged_
      HEADWATER_GUARDED_BY(mutex_);
};

}  // namespace headwater::adapter
