#include "headwater/memory/host_pool.h"

#include "headwater/base/check.h"
#include "headwater/memory/free_list.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace headwater {
namespace {

constexpr std::size_t round_down(std::size_t bytes) {
  return bytes / HostPool::kAlignment * HostPool::kAlignment;
}

// Blocks of zero bytes get an address of their own, like those of malloc.
constexpr std::size_t round_up(std::size_t bytes) {
  return round_down(std::max<std::size_t>(bytes, 1) + HostPool::kAlignment - 1);
}

}  // namespace

/// One range of host memory, returned to the operating system when destroyed.
class HostPool::Slab {
 public:
  Slab(HostMemory& memory, void* data, Reservation charge)
      : parts(charge.bytes()),
        memory_(memory),
        data_(static_cast<std::byte*>(data)),
        charge_(std::move(charge)) {}
  ~Slab() { memory_.free(data_, charge_.bytes()); }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  Slab(Slab&&) = delete;
  Slab& operator=(Slab&&) = delete;

  std::byte* data() const { return data_; }

  FreeList parts;
  std::uint64_t serial = 0;  // ties go to the older slab, so that runs repeat exactly

 private:
  HostMemory& memory_;
  std::byte* data_;
  Reservation charge_;
};

HostBlock::HostBlock(HostBlock&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

HostBlock& HostBlock::operator=(HostBlock&& other) noexcept {
  if (this != &other) {
    release();
    pool_ = std::exchange(other.pool_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void HostBlock::release() noexcept {
  if (pool_ != nullptr) {
    pool_->give_back(data_, bytes_);
  }
  pool_ = nullptr;
  data_ = nullptr;
  bytes_ = 0;
}

HostPool::HostPool(HostMemory& memory, std::size_t limit, std::size_t slab_bytes)
    : memory_(memory), slab_bytes_(round_up(slab_bytes)), budget_(limit) {}

HostPool::~HostPool() = default;

HostBlock HostPool::try_allocate(std::size_t bytes) {
  if (bytes > limit()) {
    return {};
  }
  const std::size_t rounded = round_up(bytes);
  void* data = take(rounded);
  if (data == nullptr) {
    data = take_from_new_slab(rounded);
  }
  if (data == nullptr) {
    // Empty slabs, each too small for the request, may be what fills the limit.
    trim();
    data = take_from_new_slab(rounded);
  }
  return data == nullptr ? HostBlock() : HostBlock(this, data, bytes);
}

void HostPool::trim() {
  std::vector<std::unique_ptr<Slab>> empty;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  for (auto it = slabs_.begin(); it != slabs_.end();) {
    if (it->second->parts.untouched()) {
      rooms_.erase(room_of(*it->second));
      empty.push_back(std::move(it->second));
      it = slabs_.erase(it);
    } else {
      ++it;
    }
  }
}

std::size_t HostPool::block_bytes() const {
  const MutexLock lock(mutex_);
  return block_bytes_;
}

void HostPool::give_back(void* data, std::size_t bytes) noexcept {
  const MutexLock lock(mutex_);
  const std::size_t rounded = round_up(bytes);
  const auto address = static_cast<std::byte*>(data);
  Slab& slab = *std::prev(slabs_.upper_bound(address))->second;
  rooms_.erase(room_of(slab));
  slab.parts.give_back(static_cast<std::size_t>(address - slab.data()), rounded);
  rooms_.insert(room_of(slab));
  block_bytes_ -= rounded;
}

void* HostPool::take(std::size_t bytes) {
  const MutexLock lock(mutex_);
  const auto found = rooms_.lower_bound({bytes, 0, nullptr});
  if (found == rooms_.end()) {
    return nullptr;
  }
  Slab& slab = *std::get<Slab*>(*found);
  rooms_.erase(found);
  const std::size_t offset = slab.parts.try_take(bytes).value();
  rooms_.insert(room_of(slab));
  block_bytes_ += bytes;
  return slab.data() + offset;
}

void* HostPool::take_from_new_slab(std::size_t bytes) {
  std::unique_ptr<Slab> slab = make_slab(bytes);
  if (slab == nullptr) {
    return nullptr;
  }
  // Taken before any other thread can see the slab: the maker never goes away empty-handed.
  const std::size_t offset = slab->parts.try_take(bytes).value();
  std::byte* const data = slab->data();
  const MutexLock lock(mutex_);
  slab->serial = next_serial_++;
  rooms_.insert(room_of(*slab));
  slabs_.emplace(data, std::move(slab));
  block_bytes_ += bytes;
  return data + offset;
}

std::unique_ptr<HostPool::Slab> HostPool::make_slab(std::size_t bytes) {
  const std::size_t rest = std::min(slab_bytes_, round_down(budget_.available()));
  for (const std::size_t size : {std::max(bytes, slab_bytes_), std::max(bytes, rest), bytes}) {
    std::optional<Reservation> charge = budget_.try_reserve(size);
    if (!charge) {
      continue;
    }
    if (void* data = memory_.try_allocate(size)) {
      return std::make_unique<Slab>(memory_, data, std::move(*charge));
    }
  }
  return nullptr;
}

HostPool::Room HostPool::room_of(Slab& slab) {
  return {slab.parts.largest_free(), slab.serial, &slab};
}

void HostPool::check_invariants() const {
  const MutexLock lock(mutex_);
  HEADWATER_CHECK_EQ(slabs_.size(), rooms_.size());
  std::size_t slab_bytes = 0;
  std::size_t free_bytes = 0;
  for (const auto& [data, slab] : slabs_) {
    slab->parts.check_invariants();
    HEADWATER_CHECK(data == slab->data());
    HEADWATER_CHECK(rooms_.contains(room_of(*slab)));
    slab_bytes += slab->parts.capacity();
    free_bytes += slab->parts.free_bytes();
  }
  HEADWATER_CHECK_EQ(slab_bytes, free_bytes + block_bytes_);
  // A slab being made is charged before it is listed.
  HEADWATER_CHECK_LE(slab_bytes, budget_.used());
  HEADWATER_CHECK_LE(budget_.used(), budget_.limit());
}

}  // namespace headwater
