#pragma once

#include "headwater/base/bytes.h"
#include "headwater/base/error.h"
#include "headwater/runtime/options.h"
#include "headwater/runtime/report.h"
#include "headwater/tensor/pin.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headwater {

namespace adapter {
class SessionState;
}

struct SessionOptions {
  /// Bytes of tensors allowed on the device, from 1 to what it has; Options::kMinimum keeps only
  /// what the running operator needs.
  std::size_t budget = Options::kMinimum;
  /// "cuda", "cuda:1", "cpu"; empty picks the current CUDA device, or the CPU without one.
  std::string device;
  /// Bytes of host memory for offloaded tensors. Unless told, on a GPU 90 % of what the machine and
  /// its control groups have free.
  std::size_t host_budget = Options::kAutomatic;
  /// Folder for the bytes of tensors that the host has no room for. Empty: none go to disk.
  std::string disk = {};
  std::size_t disk_budget = Options::kUnlimited;
  std::size_t min_tensor_bytes = Options{}.min_tensor_bytes;
  LogLevel log_level = LogLevel::kWarning;
  StandbyPolicy standby = StandbyPolicy::kOn;
  /// See headwater/plan/replay/recompute_policy.h.
  RecomputePolicy recompute = RecomputePolicy::kAuto;
};

/// Report of the runtime plus what only the adapter sees.
struct SessionStats : Report {
  std::uint64_t num_ops = 0;
  std::uint64_t num_replayed_ops = 0;  // that ran once more to make tensors again
  std::uint64_t num_chunked_ops = 0;
  std::uint64_t num_evacuations = 0;  // others left for an operator the device had no room for
  std::uint64_t bytes_evacuated = 0;  // of those that left then
  std::size_t gap_bytes = 0;          // of the budget, kept free: the device loses as many to gaps
  std::size_t unmanaged_bytes = 0;    // in storages that are left where they are
  bool standing_by = false;           // operators are let through: everything fits twice over
};

/// Keeps the bytes of tensors on the device, at a fixed address, while alive. Move-only.
class Hold {
 public:
  Hold() = default;
  Hold(Hold&&) noexcept = default;
  Hold& operator=(Hold&&) noexcept = default;
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() = default;
  Hold(std::shared_ptr<adapter::SessionState> session, std::vector<Pin> pins)
      : session_(std::move(session)), pins_(std::move(pins)) {}

  void release() { pins_.clear(); }

 private:
  std::shared_ptr<adapter::SessionState> session_;  // outlives its pins
  std::vector<Pin> pins_;
};

/// Trains under a byte budget while alive: every tensor of the device, also those that existed
/// before, is kept within it. One session at a time in a process.
///
///   headwater::Session session({.budget = 2_GiB});
///
/// Operators that do not fit the budget throw c10::OutOfMemoryError; nothing is lost then.
class Session {
 public:
  /// Throws InvalidArgument on unusable options, Error when a session is open already.
  explicit Session(const SessionOptions& options);
  /// Closes; an error is logged, since a destructor cannot report it.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  Session(Session&&) = delete;
  Session& operator=(Session&&) = delete;

  /// Brings every tensor back. Throws OutOfMemory when the device cannot hold them all, and Error
  /// inside an operator or a backward pass; the session stays open then.
  void close();

  /// Takes what SessionOptions::budget takes. Throws InvalidArgument otherwise, and keeps the old.
  void set_budget(std::size_t bytes);
  SessionStats stats() const;
  void reset_peak_stats();

  [[nodiscard]] Hold hold(const at::Tensor& tensor);
  /// Ends the holds of bare addresses that were handed out.
  void end_step();

  /// Memory of a device, named as in SessionOptions. Throws InvalidArgument if there is none.
  static std::size_t device_total_bytes(const std::string& device);

  /// Manages operators of the calling thread too. Threads of PyTorch's own attach themselves.
  static void attach_thread();

  const std::shared_ptr<adapter::SessionState>& state() const { return state_; }

 private:
  std::shared_ptr<adapter::SessionState> state_;
};

}  // namespace headwater
