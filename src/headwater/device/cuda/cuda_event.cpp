#include "headwater/device/cuda/cuda_event.h"

namespace headwater::cuda {

RecordedEvent::RecordedEvent(EventPool& pool, StreamHandle stream, EventPool::Kind kind)
    : pool_(pool), kind_(kind) {
  const CurrentContext current(context());
  const Driver& driver = context().driver();
  handle_ = pool.take(kind);
  const Result recorded = driver.event_record(handle_, stream);
  if (recorded != kSuccess) {
    pool.give_back(handle_, kind);
  }
  check(driver, recorded, "cuEventRecord");
}

RecordedEvent::~RecordedEvent() {
  pool_.give_back(handle_, kind_);
}

bool RecordedEvent::done() const {
  const CurrentContext current(context());
  return context().driver().event_query(handle_) != kNotReady;
}

std::optional<std::uint64_t> RecordedEvent::ns_since(const State& earlier) const {
  const auto* other = dynamic_cast<const RecordedEvent*>(&earlier);
  const Driver& driver = context().driver();
  if (other == nullptr || driver.event_elapsed_time == nullptr) {
    return std::nullopt;
  }
  constexpr float kNanosecondsOfAMillisecond = 1e6F;
  const CurrentContext current(context());
  float ms = 0;
  if (driver.event_elapsed_time(&ms, other->handle_, handle_) != kSuccess || ms < 0) {
    return std::nullopt;  // not reached yet, or recorded without a clock
  }
  return static_cast<std::uint64_t>(ms * kNanosecondsOfAMillisecond);
}

}  // namespace headwater::cuda
