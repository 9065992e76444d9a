#include "headwater/device/cuda/cuda_event.h"

namespace headwater::cuda {

RecordedEvent::RecordedEvent(const PrimaryContext& context, StreamHandle stream)
    : context_(context) {
  const CurrentContext current(context);
  const Driver& driver = context.driver();
  check(driver, driver.event_create(&handle_, kEventDisableTiming), "cuEventCreate");
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

}  // namespace headwater::cuda
