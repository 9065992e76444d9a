#include "headwater/offload/mover.h"

#include "headwater/base/check.h"
#include "headwater/base/error.h"

#include <algorithm>
#include <utility>

namespace headwater {

Mover::Mover(Parts parts)
    : device_(parts.device),
      memory_(parts.memory),
      budget_(parts.budget),
      registry_(parts.registry),
      listener_(parts.listener),
      statistics_(parts.statistics),
      host_({parts.device, std::move(parts.pools), parts.disk, parts.registry, parts.statistics}) {}

Mover::~Mover() {
  for (const StreamRef stream : copy_streams_) {
    drain(stream);
  }
}

bool Mover::try_write_back(Tensor& tensor, StreamRef stream) {
  if (!try_begin_write_back(tensor, Patience::kWait)) {
    return false;
  }
  try {
    order_after(tensor.stream, stream);
    follow(tensor, stream);
    copy(tensor, Direction::kToHost, stream);
  } catch (...) {
    drain(stream);  // some parts may be on their way
    undo_write_back(tensor);
    throw;
  }
  registry_.apply(tensor, ResidencyEvent::kWriteBackEnds);
  count_offload(tensor);
  return true;
}

void Mover::finish_write_back(Tensor& tensor) {
  try {
    await_copy(tensor, tensor.home);
  } catch (...) {
    registry_.apply(tensor, ResidencyEvent::kWriteBackFails);
    host_.retire(tensor);
    tensor.copied = Event();
    throw;
  }
  registry_.apply(tensor, ResidencyEvent::kWriteBackEnds);
}

void Mover::drop(Tensor& tensor) {
  if (tensor.residency == Residency::kWritingBack) {
    finish_write_back(tensor);
  }
  // No further wait: the allocator was told of every other stream that uses the bytes.
  registry_.apply(tensor, ResidencyEvent::kDrop);
  const Buffer freed = std::move(tensor.device);
  tensor.charge.release();
  listener_.on_move(tensor);
}

void Mover::give_up(Tensor& tensor) {
  registry_.apply(tensor, ResidencyEvent::kGiveUp);
  const Buffer freed = std::move(tensor.device);
  tensor.charge.release();
  listener_.on_move(tensor);
  ++statistics_.num_given_up;
}

HandedDown Mover::hand_down(Tensor& tensor) {
  HEADWATER_CHECK_EQ(tensor.num_pins, 0U);
  registry_.apply(tensor, ResidencyEvent::kGiveUp);
  HandedDown inheritance{std::move(tensor.device), std::move(tensor.charge)};
  listener_.on_move(tensor);
  ++statistics_.num_inherited;
  return inheritance;
}

void Mover::take_over(Tensor& tensor, Tensor& twin) {
  registry_.apply(tensor, ResidencyEvent::kReplay);
  tensor.stream = twin.stream;
  tensor.home = twin.home;
  tensor.fetched = true;  // the program knows nothing of the work that made it
  tensor.device = std::move(twin.device);
  tensor.charge = std::move(twin.charge);
  listener_.on_move(tensor);
  ++statistics_.num_replays;
  statistics_.bytes_replayed += tensor.bytes;
}

bool Mover::try_fetch(Tensor& tensor, StreamRef stream) {
  if (!try_begin_fetch(tensor, stream)) {
    return false;
  }
  try {
    order_after_copy(tensor, stream);
    copy(tensor, Direction::kToDevice, stream);
  } catch (...) {
    drain(stream);
    undo_fetch(tensor);
    throw;
  }
  registry_.apply(tensor, ResidencyEvent::kFetchEnds);
  tensor.fetched = true;
  listener_.on_move(tensor);
  count_fetch(tensor);
  return true;
}

bool Mover::try_start_write_back(Tensor& tensor) {
  const StreamRef down = own_stream(Direction::kToHost);
  if (!try_begin_write_back(tensor, Patience::kDoNotWait)) {
    return false;
  }
  try {
    order_after(tensor.stream, down);
    copy_ahead(tensor, Direction::kToHost, down);
  } catch (...) {
    drain(down);
    undo_write_back(tensor);
    throw;
  }
  count_offload(tensor);
  ++statistics_.num_offloads_ahead;
  return true;
}

bool Mover::try_start_fetch(Tensor& tensor, StreamRef stream) {
  const StreamRef up = own_stream(Direction::kToDevice);
  if (!try_start_recall(tensor) || !try_begin_fetch(tensor, stream)) {
    return false;
  }
  try {
    order_after(stream, up);  // earlier work there may still use what these bytes were before
    order_after_copy(tensor, up);
    copy_ahead(tensor, Direction::kToDevice, up);
  } catch (...) {
    drain(up);
    undo_fetch(tensor);
    throw;
  }
  count_fetch(tensor);
  ++statistics_.num_fetches_ahead;
  return true;
}

void Mover::finish_fetch(Tensor& tensor, StreamRef stream) {
  try {
    await_copy(tensor, stream);
  } catch (...) {
    abandon_fetch(tensor);
    throw;
  }
  registry_.apply(tensor, ResidencyEvent::kFetchEnds);
  tensor.stream = stream;
  tensor.fetched = true;
  if (tensor.home != stream) {
    memory_.record_use(tensor.device, stream);
  }
  listener_.on_move(tensor);
}

void Mover::abandon_fetch(Tensor& tensor) {
  if (!tensor.copied.done()) {
    device_.wait(tensor.home, tensor.copied);
  }
  tensor.copied = Event();
  undo_fetch(tensor);
  ++statistics_.num_fetches_abandoned;
}

void Mover::mark_written(Tensor& tensor, StreamRef stream) {
  tensor.packable = Packing::kNone;
  tensor.replayable = Replayable::kNo;
  ++tensor.num_writes;
  if (tensor.residency == Residency::kWritingBack) {
    device_.wait(stream, tensor.copied);
  }
  if (tensor.residency != Residency::kDevice) {
    registry_.apply(tensor, ResidencyEvent::kWrite);
    host_.retire(tensor);
  }
}

void Mover::follow(Tensor& tensor, StreamRef stream) {
  // The program orders its own streams; only a fetch is work it does not know of.
  if (tensor.fetched) {
    order_after(tensor.stream, stream);
  }
  tensor.stream = stream;
  if (tensor.home != stream) {
    memory_.record_use(tensor.device, stream);
  }
}

void Mover::let_go(Tensor& tensor) noexcept {
  const bool moving =
      tensor.residency == Residency::kWritingBack || tensor.residency == Residency::kFetching;
  try {
    if (moving) {
      device_.wait(tensor.home, tensor.copied);
    }
  } catch (const Error&) {
    // The device is broken: whoever asks it next is told.
  }
  host_.retire(tensor);
}

void Mover::synchronize() {
  for (const StreamRef stream : copy_streams_) {
    device_.synchronize(device_.record(stream));
  }
  host_.settle();
}

void Mover::forget_streams() {
  host_.forget_disk();
  up_.reset();
  down_.reset();
  copy_streams_.clear();
}

bool Mover::try_begin_write_back(Tensor& tensor, Patience patience) {
  tensor.packing = tensor.packable;
  if (tensor.packing != Packing::kNone) {
    tensor.host = host_.try_allocate_packed(packed_bytes(tensor.bytes, tensor.packing));
  }
  if (!tensor.host) {
    tensor.packing = Packing::kNone;
    tensor.host = host_.try_allocate(tensor.bytes, patience);
  }
  if (!tensor.host) {
    return false;
  }
  registry_.apply(tensor, ResidencyEvent::kWriteBackBegins);
  return true;
}

void Mover::undo_write_back(Tensor& tensor) {
  registry_.apply(tensor, ResidencyEvent::kWriteBackFails);
  tensor.host.release();
}

void Mover::count_offload(const Tensor& tensor) {
  statistics_.bytes_offloaded += link_bytes(tensor);
  ++statistics_.num_offloads;
}

bool Mover::try_begin_fetch(Tensor& tensor, StreamRef stream) {
  Reservation charge = budget_.reserve_beyond(tensor.bytes);
  Buffer buffer = memory_.try_allocate(tensor.bytes, stream);
  if (!buffer) {
    return false;
  }
  registry_.apply(tensor, ResidencyEvent::kFetchBegins);
  tensor.device = std::move(buffer);
  tensor.charge = std::move(charge);
  tensor.disk.wanted = false;
  tensor.home = stream;
  tensor.stream = stream;
  return true;
}

void Mover::undo_fetch(Tensor& tensor) {
  registry_.apply(tensor, ResidencyEvent::kFetchFails);
  const Buffer freed = std::move(tensor.device);
  tensor.charge.release();
}

void Mover::count_fetch(const Tensor& tensor) {
  statistics_.bytes_fetched += link_bytes(tensor);
  ++statistics_.num_fetches;
}

void Mover::order_after_copy(const Tensor& tensor, StreamRef stream) {
  if (tensor.copied) {
    device_.wait(stream, tensor.copied);
  } else {
    order_after(tensor.copy_stream, stream);
  }
}

void Mover::order_after(StreamRef earlier, StreamRef later) {
  if (earlier != later) {
    device_.wait(later, device_.record(earlier));
  }
}

void Mover::await_copy(const Tensor& tensor, StreamRef stream) {
  if (tensor.copied.done()) {
    device_.synchronize(tensor.copied);  // costs nothing now, and tells of a failure
  } else {
    device_.wait(stream, tensor.copied);
  }
}

void Mover::copy(Tensor& tensor, Direction direction, StreamRef stream) {
  if (std::find(copy_streams_.begin(), copy_streams_.end(), stream) == copy_streams_.end()) {
    copy_streams_.push_back(stream);
  }
  tensor.copy_stream = stream;
  tensor.copy_number = ++num_copies_;
  tensor.copied = Event();
  const bool up = direction == Direction::kToDevice;
  auto* on_device = static_cast<std::byte*>(tensor.device.data());
  for (const HostBlock::Part part : tensor.host.parts()) {
    const Copy copy{.target = up ? on_device : part.data(),
                    .source = up ? part.data() : on_device,
                    .bytes = part.size() * packing_factor(tensor.packing),
                    .direction = direction,
                    .packing = tensor.packing};
    device_.enqueue(copy, stream);
    on_device += copy.bytes;
  }
  if (has_disk()) {  // to wait for this copy alone before its host bytes are written there
    tensor.copied = device_.record(stream);
  }
}

void Mover::copy_ahead(Tensor& tensor, Direction direction, StreamRef stream) {
  copy(tensor, direction, stream);
  if (!tensor.copied) {
    tensor.copied = device_.record(stream);
  }
}

void Mover::drain(StreamRef stream) noexcept {
  try {
    device_.synchronize(device_.record(stream));
  } catch (const Error&) {
    // The device is broken: whoever asks it next is told.
  }
}

StreamRef Mover::own_stream(Direction direction) {
  std::optional<StreamRef>& stream = direction == Direction::kToDevice ? up_ : down_;
  if (!stream) {
    stream = device_.create_stream();
  }
  return *stream;
}

}  // namespace headwater
