#include "headwater/device/disk/disk_error.h"

#include <exception>
#include <new>

namespace headwater {

void throw_failure(const DiskFailure& failure) {
  switch (failure.kind) {
    case DiskFailure::Kind::kFull:
      throw DiskFull(failure.text);
    case DiskFailure::Kind::kTruncated:
      throw DiskTruncated(failure.text);
    case DiskFailure::Kind::kCorrupt:
      throw DiskCorrupt(failure.text);
    case DiskFailure::Kind::kInternal:
      throw InternalError(failure.text);
    case DiskFailure::Kind::kOther:
      break;
  }
  throw DiskError(failure.text);
}

DiskFailure current_failure() {
  try {
    throw;
  } catch (const DiskFull& failure) {
    return {.kind = DiskFailure::Kind::kFull, .text = failure.what()};
  } catch (const DiskTruncated& failure) {
    return {.kind = DiskFailure::Kind::kTruncated, .text = failure.what()};
  } catch (const DiskCorrupt& failure) {
    return {.kind = DiskFailure::Kind::kCorrupt, .text = failure.what()};
  } catch (const DiskError& failure) {
    return {.text = failure.what()};
  } catch (const std::bad_alloc&) {
    return {.text = "Disk transfer failed. Free host memory: no room for a bounce buffer"};
  } catch (const std::exception& failure) {
    return {.kind = DiskFailure::Kind::kInternal, .text = failure.what()};
  }
}

}  // namespace headwater
