#include "headwater/device/disk/io_request.h"

#include "headwater/base/bytes.h"
#include "headwater/device/disk/aligned_bytes.h"
#include "headwater/device/disk/disk_error.h"
#include "headwater/device/disk/store_file.h"
#include "support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace headwater::disk {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace)
using testing::EndsWith;
using testing::StartsWith;

class IoRequestTest : public testing::Test {
 protected:
  IoPiece piece(IoKind kind) const {
    IoRequest request = IoRequest::read(file_, 8_KiB, bytes_.first(64_KiB));
    request.kind = kind;
    return cut(request, 1_MiB).front();
  }

  template <class Failure>
  static std::string text_of(const IoPiece& piece) {
    try {
      piece.completion->wait();
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "";
  }

  support::TemporaryFolder folder_;
  Log log_{LogLevel::kOff};
  StoreFile file_{{.folder = folder_.path(), .margin_bytes = 0}, log_};
  AlignedBytes bytes_{64_KiB, 64_KiB};
};

TEST_F(IoRequestTest, PiecesCoverTheRequestInOrder) {
  const auto pieces = cut(IoRequest::read(file_, 8_KiB, bytes_.first(40_KiB)), 16_KiB);
  ASSERT_EQ(pieces.size(), 3U);
  std::size_t begin = 0;
  for (const IoPiece& piece : pieces) {
    EXPECT_EQ(piece.offset, 8_KiB + begin);
    EXPECT_EQ(piece.bytes.data(), bytes_.first(0).data() + begin);
    EXPECT_EQ(piece.completion, pieces.front().completion);
    begin += piece.bytes.size();
  }
  EXPECT_EQ(begin, 40_KiB);
}

TEST_F(IoRequestTest, ARequestIsDoneWhenItsLastPieceHasEnded) {
  auto pieces = cut(IoRequest::write(file_, 0, bytes_.first(32_KiB)), 16_KiB);
  EXPECT_EQ(settle(pieces[1], 16_KiB), PieceState::kEnded);
  EXPECT_FALSE(pieces[0].completion->done());
  EXPECT_EQ(settle(pieces[0], 16_KiB), PieceState::kEnded);
  EXPECT_TRUE(pieces[0].completion->done());
}

TEST_F(IoRequestTest, AnInterruptedPieceIsTriedAgain) {
  IoPiece one = piece(IoKind::kWrite);
  EXPECT_EQ(settle(one, -EINTR), PieceState::kUnfinished);
  EXPECT_EQ(settle(one, -EAGAIN), PieceState::kUnfinished);
  EXPECT_EQ(settle(one, -ECANCELED), PieceState::kUnfinished);
  EXPECT_EQ(one.offset, 8_KiB);
}

TEST_F(IoRequestTest, APieceGoesOnWhereASystemCallStopped) {
  IoPiece one = piece(IoKind::kRead);
  EXPECT_EQ(settle(one, 60_KiB), PieceState::kUnfinished);
  EXPECT_EQ(one.offset, 68_KiB);
  EXPECT_EQ(one.bytes.size(), 4_KiB);
  EXPECT_EQ(settle(one, 4_KiB), PieceState::kEnded);
  EXPECT_NO_THROW(one.completion->wait());
}

TEST_F(IoRequestTest, AFullDiskHasAnErrorOfItsOwn) {
  IoPiece one = piece(IoKind::kWrite);
  EXPECT_EQ(settle(one, -ENOSPC), PieceState::kEnded);
  EXPECT_EQ(
      text_of<DiskFull>(one),
      "Disk is full. Free space on it or lower the disk budget: writing 64 KiB at offset 8192 "
      "bytes, No space left on device");
}

TEST_F(IoRequestTest, AnyOtherErrorCarriesTheSystemsText) {
  IoPiece one = piece(IoKind::kRead);
  settle(one, -EIO);
  EXPECT_EQ(text_of<DiskError>(one),
            "Disk read failed. Check the disk behind the disk folder: 64 KiB at offset 8192 bytes, "
            "Input/output error");
}

TEST_F(IoRequestTest, AReadOfNothingIsATruncatedFile) {
  IoPiece one = piece(IoKind::kRead);
  settle(one, 4_KiB);
  settle(one, 0);
  const std::string text = text_of<DiskTruncated>(one);
  EXPECT_THAT(text, StartsWith("Store file ends too early."));
  EXPECT_THAT(text, EndsWith("reading 60 KiB at offset 12288 bytes"));
}

TEST_F(IoRequestTest, TheFirstFailureIsTheOneThatIsThrown) {
  auto pieces = cut(IoRequest::write(file_, 0, bytes_.first(32_KiB)), 16_KiB);
  settle(pieces[1], -ENOSPC);
  settle(pieces[0], -EIO);
  EXPECT_THROW(pieces[0].completion->wait(), DiskFull);
}

}  // namespace
}  // namespace headwater::disk
