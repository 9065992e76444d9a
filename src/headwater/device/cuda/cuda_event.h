#pragma once

#include "headwater/device/cuda/event_pool.h"
#include "headwater/device/event.h"

#include <cstdint>
#include <optional>

namespace headwater::cuda {

/// Has one driver event of a pool, recorded once. The pool outlives it. Thread-safe.
class RecordedEvent final : public Event::State {
 public:
  RecordedEvent(EventPool& pool, StreamHandle stream, EventPool::Kind kind);
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
  const PrimaryContext& context() const { return pool_.context(); }

  EventPool& pool_;
  const EventPool::Kind kind_;
  EventHandle handle_ = nullptr;
};

}  // namespace headwater::cuda
