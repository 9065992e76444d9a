#pragma once

#include "headwater/base/id.h"
#include "headwater/device/event.h"
#include "headwater/device/packing.h"
#include "headwater/device/stream.h"
#include "headwater/memory/budget.h"
#include "headwater/memory/buffer.h"
#include "headwater/memory/host_pool.h"
#include "headwater/tensor/disk_copy.h"
#include "headwater/tensor/residency.h"

#include <cstddef>
#include <cstdint>
#include <list>

namespace headwater {

/// Whether operators can make a tensor's bytes again, until somebody writes it, so that room is
/// made by giving them up without a copy.
enum class Replayable : unsigned char {
  kNo,
  kByPlan,  // but that is done only when a plan says so
  kAlways,  // whenever room is needed
};

/// What the registry knows of one storage of the framework. Plain data: the registry decides its
/// life, the tensor cache moves its bytes.
///
/// Invariants: `device` and `charge` are set exactly when the residency is on the device or a fetch
/// is in flight; `host` is set while a move is in flight, and `host` or a current `disk` in kBoth
/// and kHost; neither is set in other residencies; a pinned tensor is on the device; one that has
/// been given up is replayable.
struct Tensor {
  TensorId id;
  std::size_t bytes = 0;
  void* owner = nullptr;  // the adapter's storage object; null once released
  Residency residency = Residency::kDevice;
  std::uint32_t num_pins = 0;
  std::uint32_t num_holds = 0;        // the pins whose owners know the address of the bytes
  bool held_for_life = false;         // one of the pins ends with the storage
  bool fetched = false;               // work the program does not know of used the device bytes
  Packing packable = Packing::kNone;  // what its numbers allow, until somebody writes it
  Packing packing = Packing::kNone;   // of the host bytes
  Replayable replayable = Replayable::kNo;
  std::uint64_t num_writes = 0;            // to it, since it was adopted
  bool leaving = false;                    // the device bytes go as soon as somebody needs the room
  std::uint64_t request = 0;               // last request that pinned it, to count its bytes once
  StreamRef stream = kDefaultStream;       // last stream that used or moved the device bytes
  StreamRef home = kDefaultStream;         // stream whose order the device bytes were allocated in
  StreamRef copy_stream = kDefaultStream;  // stream of the last copy between device and host
  std::uint64_t copy_number = 0;           // of that copy, counted from one
  Event copied;                            // its end, if made ahead of need or with a disk below

  Buffer device;
  Reservation charge;
  HostBlock host;
  DiskCopy disk;

  std::list<Tensor>::iterator position;  // in the registry's list for its residency
};

/// Bytes that its next copy moves.
inline std::size_t link_bytes(const Tensor& tensor) {
  return packed_bytes(tensor.bytes, tensor.host ? tensor.packing : tensor.packable);
}

/// Whether the host bytes can be used; they may be missing or still on their way from disk.
inline bool on_host(const Tensor& tensor) {
  return tensor.host && tensor.disk.state != DiskState::kReading;
}

}  // namespace headwater
