#pragma once

#include "headwater/device/cuda/context.h"
#include "headwater/device/event.h"

#include <cstdint>
#include <optional>

namespace headwater::cuda {

/// Owns one driver event, recorded once. The context outlives it. Thread-safe.
class RecordedEvent final : public Event::State {
 public:
  RecordedEvent(const PrimaryContext& context, StreamHandle stream, unsigned flags);
  ~RecordedEvent() override;
  RecordedEvent(const RecordedEvent&) = delete;
  RecordedEvent& operator=(const RecordedEvent&) = delete;
  RecordedEvent(RecordedEvent&&) = delete;
  RecordedEvent& operator=(RecordedEvent&&) = delete;

  /// Also true when the work before it failed: waiting then throws at once.
  bool done() const override;
  std::optional<std::uint64_t> ns_since(const State& earlier) const override;
  EventHandle handle() const { return handle_; }

 private:
  const PrimaryContext& context_;
  EventHandle handle_ = nullptr;
};

}  // namespace headwater::cuda
