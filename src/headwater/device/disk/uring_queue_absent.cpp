#include "headwater/device/disk/uring_queue.h"

namespace headwater::disk {

std::unique_ptr<IoQueue> try_make_uring_queue(const IoOptions& /*options*/) {
  return nullptr;
}

}  // namespace headwater::disk
