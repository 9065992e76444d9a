#include "headwater/device/cuda/cuda_event.h"

namespace headwater::cuda {

RecordedEvent::RecordedEvent(const PrimaryContext& context, StreamHandle stream, unsigned flags)
    : context_(context) {
  const CurrentContext current(context);
  const Driver& driver = context.driver();
  check(driver, driver.event_create(&handle_, flags), "cuEventCreate");
  const Result recorded = driver.event_record(handle_, stream);
  if (recorded != kSuccess) {
    driver.event_destroy(handle_);
  }
  check(driver, recorded, "cuEventRecord");
}

RecordedEvent::~RecordedEvent() {
  const CurrentContext current(context_);
  context_.driver().event_destroy(handle_);
}

bool RecordedEvent::done() const {
  const CurrentContext current(context_);
  return context_.driver().event_query(handle_) != kNotReady;
}

std::optional<std::uint64_t> RecordedEvent::ns_since(const State& earlier) const {
  const auto* other = dynamic_cast<const RecordedEvent*>(&earlier);
  const Driver& driver = context_.driver();
  if (other == nullptr || driver.event_elapsed_time == nullptr) {
    return std::nullopt;
  }
  constexpr float kNanosecondsOfAMillisecond = 1e6F;
  const CurrentContext current(context_);
  float ms = 0;
  if (driver.event_elapsed_time(&ms, other->handle_, handle_) != kSuccess || ms < 0) {
    return std::nullopt;  // not reached yet, or recorded without a clock
  }
  return static_cast<std::uint64_t>(ms * kNanosecondsOfAMillisecond);
}

}  // namespace headwater::cuda
