#include "headwater/device/disk/uring_queue.h"

#include "conformance/io_queue_suite.h"

namespace headwater::conformance {
namespace {

struct Uring {
  static std::unique_ptr<disk::IoQueue> make(const disk::IoOptions& options) {
    return disk::try_make_uring_queue(options);
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Uring, IoQueueSuite, Uring);

}  // namespace
}  // namespace headwater::conformance
