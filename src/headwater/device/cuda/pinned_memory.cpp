#include "headwater/device/cuda/pinned_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace headwater::cuda {
namespace {

constexpr std::size_t kMaxThreads = 8;
constexpr std::size_t kMinBytesPerThread = std::size_t{16} << 20;

constexpr std::size_t kLargePage = std::size_t{2} << 20;

/// Maps fresh memory that begins with a large page; null when there is none.
std::byte* map_aligned(std::size_t bytes) {
  void* mapped = ::mmap(
      nullptr, bytes + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return nullptr;
  }
  auto* const begin = static_cast<std::byte*>(mapped);
  const std::size_t before =
      (kLargePage - reinterpret_cast<std::uintptr_t>(begin) % kLargePage) % kLargePage;
  if (before > 0) {
    ::munmap(begin, before);
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  std::byte* const end = begin + before + (bytes + page - 1) / page * page;
  if (std::byte* const mapped_end = begin + bytes + kLargePage; end < mapped_end) {
    ::munmap(end, static_cast<std::size_t>(mapped_end - end));
  }
  return begin + before;
}

void touch(std::byte* begin, std::byte* end, std::size_t page) {
  for (volatile std::byte* byte = begin; byte < end; byte += page) {
    *byte = std::byte{0};
  }
}

void fault_in(std::byte* data, std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGE_SIZE));
  const std::size_t cores =
      std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads);
  const std::size_t num_threads = std::clamp<std::size_t>(bytes / kMinBytesPerThread, 1, cores);
  const std::size_t share = (bytes / num_threads / page + 1) * page;
  std::vector<std::jthread> threads;
  for (std::size_t begin = share; begin < bytes; begin += share) {
    threads.emplace_back(touch, data + begin, data + std::min(begin + share, bytes), page);
  }
  touch(data, data + std::min(share, bytes), page);
}

}  // namespace

void* PinnedMemory::try_allocate(std::size_t bytes) {
  std::byte* const data = map_aligned(bytes);
  if (data == nullptr) {
    return nullptr;
  }
  // Large pages are faster to fault in, to register and to copy from; else small ones do.
  ::madvise(data, bytes, MADV_HUGEPAGE);
  fault_in(data, bytes);
  const CurrentContext current(context_);
  if (context_.driver().mem_host_register(data, bytes, kHostRegisterFlags) != kSuccess) {
    ::munmap(data, bytes);
    return nullptr;
  }
  return data;
}

void PinnedMemory::free(void* data, std::size_t bytes) {
  const CurrentContext current(context_);
  // A copy may be on its way to or from the range although nobody needs its bytes any more.
  context_.driver().context_synchronize();
  context_.driver().mem_host_unregister(data);
  ::munmap(data, bytes);
}

}  // namespace headwater::cuda
