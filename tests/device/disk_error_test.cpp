#include "headwater/device/disk/disk_error.h"

#include <gtest/gtest.h>

#include <new>

namespace headwater {
namespace {

using Kind = DiskFailure::Kind;

template <class Exception>
DiskFailure caught(const Exception& exception) {
  try {
    throw exception;
  } catch (...) {
    return current_failure();
  }
}

TEST(DiskErrorTest, EveryKindIsThrownAsItsType) {
  EXPECT_THROW(throw_failure({.kind = Kind::kFull}), DiskFull);
  EXPECT_THROW(throw_failure({.kind = Kind::kTruncated}), DiskTruncated);
  EXPECT_THROW(throw_failure({.kind = Kind::kCorrupt}), DiskCorrupt);
  EXPECT_THROW(throw_failure({.kind = Kind::kInternal}), InternalError);
  EXPECT_THROW(throw_failure({.kind = Kind::kOther}), DiskError);
}

TEST(DiskErrorTest, EveryTypeIsCaughtAsItsKindWithItsText) {
  EXPECT_EQ(caught(DiskFull("a")), (DiskFailure{.kind = Kind::kFull, .text = "a"}));
  EXPECT_EQ(caught(DiskTruncated("b")), (DiskFailure{.kind = Kind::kTruncated, .text = "b"}));
  EXPECT_EQ(caught(DiskCorrupt("c")), (DiskFailure{.kind = Kind::kCorrupt, .text = "c"}));
  EXPECT_EQ(caught(DiskError("d")), (DiskFailure{.kind = Kind::kOther, .text = "d"}));
  EXPECT_EQ(caught(InternalError("e")), (DiskFailure{.kind = Kind::kInternal, .text = "e"}));
}

TEST(DiskErrorTest, WithoutHostMemoryATransferFailsWithAdvice) {
  EXPECT_EQ(caught(std::bad_alloc()).kind, Kind::kOther);
  EXPECT_NE(caught(std::bad_alloc()).text.find("Free host memory"), std::string::npos);
}

TEST(DiskErrorTest, EveryFailureOfTheDiskIsADeviceError) {
  EXPECT_THROW(throw_failure({.kind = Kind::kFull, .text = "full"}), DeviceError);
}

}  // namespace
}  // namespace headwater
