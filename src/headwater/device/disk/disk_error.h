#pragma once

#include "headwater/base/error.h"

#include <string>

namespace headwater {

/// A call on the disk tier failed; the message carries the system's own text.
class DiskError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The file system had no room for a write, in spite of the space set aside for it.
class DiskFull final : public DiskError {
 public:
  using DiskError::DiskError;
};

/// The store file ended before the bytes that were asked for.
class DiskTruncated final : public DiskError {
 public:
  using DiskError::DiskError;
};

/// The bytes that came back are not those that were written.
class DiskCorrupt final : public DiskError {
 public:
  using DiskError::DiskError;
};

/// A failure on its way to another thread, as data: whoever waits throws an exception of its own.
struct DiskFailure {
  enum class Kind : unsigned char { kOther, kFull, kTruncated, kCorrupt, kInternal };

  Kind kind = Kind::kOther;
  std::string text;

  bool operator==(const DiskFailure&) const = default;
};

/// Throws DiskError, the one of its kinds above, or InternalError.
[[noreturn]] void throw_failure(const DiskFailure& failure);

/// What throw_failure() needs to throw the same again. REQUIRES: an exception is being handled.
DiskFailure current_failure();

}  // namespace headwater
