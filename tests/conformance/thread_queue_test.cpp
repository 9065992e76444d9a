#include "headwater/device/disk/thread_queue.h"

#include "conformance/io_queue_suite.h"

namespace headwater::conformance {
namespace {

struct Threads {
  static std::unique_ptr<disk::IoQueue> make(const disk::IoOptions& options) {
    return std::make_unique<disk::ThreadQueue>(options);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Threads, IoQueueSuite, Threads);

}  // namespace
}  // namespace headwater::conformance
