#include "headwater/offload/stowage.h"

#include "headwater/base/bytes.h"
#include "headwater/base/check.h"
#include "headwater/device/disk/disk_error.h"

#include <string>
#include <utility>

namespace headwater {
namespace {

[[noreturn]] void throw_not_recalled(const Tensor& tensor, DiskFailure failure) {
  failure.text =
      "A tensor cannot be read back from disk. Nothing else is lost, and the read can be tried "
      "again: tensor " +
      format_bytes(tensor.bytes) + ". " + failure.text;
  throw_failure(failure);
}

}  // namespace

bool Stowage::try_start_write(Tensor& tensor) {
  if (broken()) {
    return false;
  }
  DiskBlock block;
  try {
    block = pool_.try_allocate(tensor.bytes);
  } catch (const DiskError& failure) {
    note_failure(failure);
  }
  if (!block) {
    return false;
  }
  tensor.disk.transfer = pool_.write(block, tensor.host);
  tensor.disk.block = std::move(block);
  tensor.disk.state = DiskState::kWriting;
  writes_.push_back(&tensor);
  return true;
}

void Stowage::end_oldest_write() {
  Tensor& oldest = *writes_.front();
  writes_.erase(writes_.begin());
  end_write(oldest);
}

void Stowage::settle_writes() {
  std::erase_if(writes_, [this](Tensor* tensor) {
    const bool done = tensor->disk.transfer.done();
    if (done) {
      end_write(*tensor);
    }
    return done;
  });
}

void Stowage::start_read(Tensor& tensor, HostBlock target) {
  tensor.disk.transfer = pool_.read(tensor.disk.block, target);
  tensor.host = std::move(target);
  tensor.disk.state = DiskState::kReading;
  reads_.push_back(&tensor);
}

void Stowage::end_read(Tensor& tensor) {
  std::erase(reads_, &tensor);
  tensor.disk.state = DiskState::kCurrent;
  try {
    try {
      tensor.disk.transfer.wait();
    } catch (const DiskError& failure) {
      pool_.log().write(LogLevel::kWarning,
                        std::string("Reading from disk a second time: ") + failure.what());
      tensor.disk.transfer = pool_.read(tensor.disk.block, tensor.host);
      tensor.disk.transfer.wait();
    }
  } catch (const DiskError&) {
    give_up_read(tensor);
    throw_not_recalled(tensor, current_failure());
  } catch (...) {
    give_up_read(tensor);
    throw;
  }
  statistics_.bytes_recalled += tensor.bytes;
  ++statistics_.num_recalls;
}

void Stowage::settle_reads() noexcept {
  const std::vector<Tensor*> reads = reads_;
  for (Tensor* tensor : reads) {
    if (tensor->disk.transfer.done()) {
      end_read_quietly(*tensor);
    }
  }
}

bool Stowage::end_oldest_read() noexcept {
  if (reads_.empty()) {
    return false;
  }
  end_read_quietly(*reads_.front());
  return true;
}

void Stowage::let_go(Tensor& tensor) noexcept {
  if (tensor.disk.state == DiskState::kNone) {
    return;
  }
  std::erase(writes_, &tensor);
  std::erase(reads_, &tensor);
  tensor.disk = DiskCopy();
}

void Stowage::synchronize() noexcept {
  while (!writes_.empty()) {
    end_oldest_write();
  }
  while (end_oldest_read()) {
  }
}

std::string_view Stowage::shortage() const {
  if (!pool_.owned()) {
    return "the host tiers are full and the disk is that of the process this one was forked from: "
           "start processes by spawn";
  }
  if (broken()) {
    return "the host tiers are full and the disk fails: raise host_budget, or give another disk";
  }
  return "the host tiers and the disk are full: raise host_budget or disk_budget";
}

void Stowage::end_read_quietly(Tensor& tensor) noexcept {
  try {
    end_read(tensor);
  } catch (const Error&) {
    // Whoever needs the bytes asks for them again, and is told.
  }
}

void Stowage::give_up_read(Tensor& tensor) noexcept {
  tensor.host.release();
  tensor.disk.wanted = false;
}

void Stowage::end_write(Tensor& tensor) {
  try {
    tensor.disk.transfer.wait();
  } catch (const Error& failure) {
    note_failure(failure);
    bad_blocks_.push_back(std::move(tensor.disk.block));
    tensor.disk = DiskCopy();
    return;
  }
  num_failures_ = 0;
  tensor.disk.state = DiskState::kCurrent;
  statistics_.bytes_stowed += tensor.bytes;
  ++statistics_.num_stows;
}

void Stowage::note_failure(const Error& failure) {
  ++num_failures_;
  const std::string what =
      broken() ? "Disk writes keep failing: no more tensors go there. " : "Disk write failed. ";
  pool_.log().write(broken() ? LogLevel::kError : LogLevel::kWarning, what + failure.what());
}

void Stowage::check_invariants() const {
  pool_.check_invariants();
  for (const Tensor* tensor : writes_) {
    HEADWATER_CHECK(tensor->disk.state == DiskState::kWriting);
  }
  for (const Tensor* tensor : reads_) {
    HEADWATER_CHECK(tensor->disk.state == DiskState::kReading);
  }
}

}  // namespace headwater
