#pragma once

#include "headwater/base/error.h"
#include "headwater/device/device.h"

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace headwater::support {

/// Writes down what a device is asked to do, in order. Recording is for one thread; without it the
/// wrapper is as thread-safe as the wrapped device.
class RecordingDevice final : public Device {
 public:
  explicit RecordingDevice(Device& inner) : inner_(inner) {}

  void start_recording() { recording_ = true; }
  /// What was asked since, as "up 1", "down 0", "record 1", "wait 2" with the stream's number.
  std::vector<std::string> take_calls() { return std::exchange(calls_, {}); }
  /// The next record() throws DeviceError.
  void fail_next_record() { fail_record_ = true; }
  std::size_t num_copies() const { return num_copies_; }

  DeviceInfo info() const override { return inner_.info(); }
  [[nodiscard]] void* try_allocate(std::size_t bytes, StreamRef stream) override {
    return inner_.try_allocate(bytes, stream);
  }
  void free(void* data, std::size_t bytes, StreamRef stream) override {
    inner_.free(data, bytes, stream);
  }
  void enqueue(const Copy& copy, StreamRef stream) override {
    note(copy.direction == Direction::kToDevice ? "up " : "down ", stream);
    ++num_copies_;
    inner_.enqueue(copy, stream);
  }
  StreamRef create_stream() override { return inner_.create_stream(); }
  Event record_event(StreamRef stream, Timing timing) override {
    note("record ", stream);
    if (fail_record_.exchange(false)) {
      throw DeviceError("Record failed: injected fault");
    }
    return timing == Timing::kOn ? inner_.record_timed(stream) : inner_.record(stream);
  }
  void wait(StreamRef stream, const Event& event) override {
    note("wait ", stream);
    inner_.wait(stream, event);
  }
  void synchronize(const Event& event) override { inner_.synchronize(event); }

 private:
  void note(const char* what, StreamRef stream) {
    if (recording_) {
      calls_.push_back(what + std::to_string(stream.native()));
    }
  }

  Device& inner_;
  std::atomic<bool> fail_record_{false};
  std::atomic<std::size_t> num_copies_{0};
  bool recording_ = false;
  std::vector<std::string> calls_;
};

}  // namespace headwater::support
