#pragma once

#include "headwater/device/disk/io_queue.h"

#include <memory>

namespace headwater::disk {

/// A queue that hands pieces to the kernel and is told of their end: one thread, whatever is in
/// flight. Null where the kernel refuses, or where the build found no liburing
/// (uring_queue_absent.cpp).
[[nodiscard]] std::unique_ptr<IoQueue> try_make_uring_queue(const IoOptions& options);

}  // namespace headwater::disk
