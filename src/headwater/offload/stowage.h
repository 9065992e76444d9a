#pragma once

#include "headwater/memory/disk_pool.h"
#include "headwater/memory/host_pool.h"
#include "headwater/memory/statistics.h"
#include "headwater/tensor/tensor.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace headwater {

/// Copies the bytes of tensors between host memory and disk. Decides nothing: the host room says
/// which tensor and when. Thread-compatible.
///
/// A failed write leaves the bytes on the host, and its block is never used again. A failed read is
/// tried a second time; after that the bytes are still on disk, and can be asked for again.
class Stowage final {
 public:
  Stowage(DiskPool& pool, Statistics& statistics) : pool_(pool), statistics_(statistics) {}

  /// Begins to copy the host bytes to disk. False when the disk has no room or has failed too
  /// often. REQUIRES: the host bytes are there, all of them, and do not change.
  [[nodiscard]] bool try_start_write(Tensor& tensor);
  /// Waits for the write that was begun first. REQUIRES: there is one.
  void end_oldest_write();
  /// Notes the writes that have ended.
  void settle_writes();
  std::size_t num_writes() const { return writes_.size(); }

  /// Begins to copy the bytes on disk to a host block.
  void start_read(Tensor& tensor, HostBlock target);
  /// Waits for that. Throws DiskError, with the bytes on disk only.
  void end_read(Tensor& tensor);
  /// Notes the reads that have ended; whoever needs the bytes of a failed one is told.
  void settle_reads() noexcept;
  /// Waits for the read that was begun first. False when there is none.
  bool end_oldest_read() noexcept;

  /// Gives up the copy on disk. Waits for a transfer under way, which uses the host bytes.
  void let_go(Tensor& tensor) noexcept;
  /// Waits until no transfer is under way.
  void synchronize() noexcept;

  /// Whether writes have failed so often that there will be no more.
  bool broken() const { return num_failures_ >= kMostFailures; }
  /// Why no more goes to disk and what to do, for messages.
  std::string_view shortage() const;
  void check_invariants() const;

 private:
  static constexpr std::size_t kMostFailures = 3;  // in a row

  void end_write(Tensor& tensor);
  void note_failure(const Error& failure);
  void end_read_quietly(Tensor& tensor) noexcept;
  void give_up_read(Tensor& tensor) noexcept;

  DiskPool& pool_;
  Statistics& statistics_;
  std::vector<Tensor*> writes_;  // under way, in the order they were begun
  std::vector<Tensor*> reads_;
  std::vector<DiskBlock> bad_blocks_;  // kept, so that nothing is written there again
  std::size_t num_failures_ = 0;       // since the last write that went well
};

}  // namespace headwater
