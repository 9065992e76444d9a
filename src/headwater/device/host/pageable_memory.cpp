#include "headwater/device/host/pageable_memory.h"

#include <sys/mman.h>

namespace headwater::host {

void* PageableMemory::try_allocate(std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return data == MAP_FAILED ? nullptr : data;
}

void PageableMemory::free(void* data, std::size_t bytes) {
  ::munmap(data, bytes);
}

}  // namespace headwater::host
