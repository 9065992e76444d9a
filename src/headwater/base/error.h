#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace headwater {

/// Root of everything Headwater throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The caller passed something unusable; nothing was changed.
class InvalidArgument : public Error {
 public:
  using Error::Error;
};

/// A device call failed; the message carries the call's own text.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// A broken invariant: a fault of Headwater, never of its user.
class InternalError : public Error {
 public:
  using Error::Error;
};

/// The numbers behind an OutOfMemory, all in bytes.
struct Shortage {
  std::string op;                   // operator that asked; empty outside an operator
  std::size_t working_set = 0;      // bytes that must be on the device at once for it
  std::size_t budget = 0;           // the limit in force
  std::size_t pinned = 0;           // bytes others hold on the device
  std::size_t smallest_budget = 0;  // least budget under which the same request succeeds
  std::string note;                 // what else stood in the way; empty when nothing did

  bool operator==(const Shortage&) const = default;
};

/// A request that no amount of moving makes fit. The process can go on; nothing was lost.
class OutOfMemory : public Error {
 public:
  explicit OutOfMemory(Shortage shortage);
  /// For a tier below the device, where no operator and no budget of the device is involved.
  explicit OutOfMemory(const std::string& message) : Error(message) {}

  const Shortage& shortage() const { return shortage_; }

 private:
  Shortage shortage_;
};

}  // namespace headwater
