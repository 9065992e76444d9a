#pragma once

#include "headwater/base/error.h"

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

}  // namespace headwater
