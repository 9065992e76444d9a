#include "headwater/device/disk/io_queue.h"

#include "headwater/device/disk/thread_queue.h"
#include "headwater/device/disk/uring_queue.h"

namespace headwater::disk {

std::unique_ptr<IoQueue> make_io_queue(const IoOptions& options, const Log& log) {
  std::unique_ptr<IoQueue> queue;
  if (options.engine == IoEngine::kUring) {
    queue = try_make_uring_queue(options);
    if (queue == nullptr) {
      log.write(LogLevel::kInfo, "No io_uring in this build or kernel: threads read and write");
    }
  }
  return queue != nullptr ? std::move(queue) : std::make_unique<ThreadQueue>(options);
}

}  // namespace headwater::disk
