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

HostPool::HostPool(HostMemory& memory, std::size_t limit, std::size_t slab_bytes)
    : memory_(memory),
      slab_bytes_(round_up(slab_bytes)),
      least_part_(std::clamp(slab_bytes_, kPageBytes, kLeastPartBytes)),
      budget_(limit) {}

HostPool::~HostPool() = default;

HostBlock HostPool::try_allocate(std::size_t bytes) {
  if (bytes > limit()) {
    return {};
  }
  const std::size_t rounded = round_up(bytes);
  Parts parts;
  if (!try_take(rounded, parts) && !try_take_from_new_slab(rounded, parts)) {
    // Empty slabs, each too small for the request, may be what fills the limit.
    trim();
    if (!try_take_from_new_slab(rounded, parts)) {
      return {};
    }
  }
  return block_of(std::move(parts), bytes);
}

HostBlock HostPool::try_gather(std::size_t bytes) {
  if (bytes > limit()) {
    return {};
  }
  const std::size_t rounded = round_up(bytes);
  Parts parts;
  std::size_t missing = gather(rounded, std::max(rounded / kMostParts, least_part_), parts);
  if (missing > 0 && may_stay_idle(rounded, parts)) {
    give_back(parts);
    parts.clear();
    missing = rounded;
  }
  if (missing > 0 && !try_take_from_new_slab(missing, parts)) {
    missing = gather(missing, kPageBytes, parts);  // small parts are better than none
    if (missing > 0) {
      give_back(parts);
      return try_allocate(bytes);
    }
  }
  return block_of(std::move(parts), bytes);
}

void HostPool::trim() {
  std::vector<std::unique_ptr<Slab>> empty;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  for (Slab* slab : empty_slabs()) {
    empty.push_back(remove(*slab));
  }
}

void HostPool::end_step() {
  std::vector<std::unique_ptr<Slab>> surplus;  // destroyed after the lock is released
  const MutexLock lock(mutex_);
  if (std::exchange(forgetting_, false)) {
    recent_ = {};
    recent_.note(block_bytes_);
    return;
  }
  const std::size_t most = recent_.most();
  recent_.end_step(block_bytes_);
  std::size_t held = budget_.used();
  if (held <= most + most / kSurplusShare + kLeastSlabBytes) {
    return;
  }
  for (Slab* slab : empty_slabs()) {
    const std::size_t bytes = slab->parts.capacity();
    if (held >= most + bytes) {
      held -= bytes;
      surplus.push_back(remove(*slab));
    }
  }
}

void HostPool::forget_peaks() {
  const MutexLock lock(mutex_);
  forgetting_ = true;
}

void HostPool::reset_peak() {
  const MutexLock lock(mutex_);
  peak_block_bytes_ = block_bytes_;
  budget_.reset_peak();
}

std::size_t HostPool::block_bytes() const {
  const MutexLock lock(mutex_);
  return block_bytes_;
}

std::size_t HostPool::peak_block_bytes() const {
  const MutexLock lock(mutex_);
  return peak_block_bytes_;
}

void HostPool::give_back(std::span<const HostBlock::Part> parts) noexcept {
  const MutexLock lock(mutex_);
  for (const HostBlock::Part part : parts) {
    const std::size_t rounded = round_up(part.size());
    Slab& slab = *std::prev(slabs_.upper_bound(part.data()))->second;
    rooms_.erase(room_of(slab));
    slab.parts.give_back(static_cast<std::size_t>(part.data() - slab.data()), rounded);
    rooms_.insert(room_of(slab));
    block_bytes_ -= rounded;
  }
}

std::size_t HostPool::gather(std::size_t bytes, std::size_t least, Parts& parts) {
  const MutexLock lock(mutex_);
  while (bytes > 0) {
    if (const auto fits = rooms_.lower_bound({bytes, 0, nullptr}); fits != rooms_.end()) {
      take(fits, bytes, parts);
      return 0;
    }
    // None holds all of it: the largest of them. Whole pages, so that a file takes them as they
    // are.
    const std::size_t largest = rooms_.empty() ? 0 : std::get<0>(*rooms_.rbegin());
    if (largest < least) {
      break;
    }
    const std::size_t part = largest / kPageBytes * kPageBytes;
    take(std::prev(rooms_.end()), part, parts);
    bytes -= part;
  }
  return bytes;
}

bool HostPool::try_take(std::size_t bytes, Parts& parts) {
  const MutexLock lock(mutex_);
  const auto fits = rooms_.lower_bound({bytes, 0, nullptr});
  if (fits == rooms_.end()) {
    return false;
  }
  take(fits, bytes, parts);
  return true;
}

bool HostPool::try_take_from_new_slab(std::size_t bytes, Parts& parts) {
  std::unique_ptr<Slab> slab = make_slab(bytes);
  if (slab == nullptr) {
    return false;
  }
  const MutexLock lock(mutex_);
  slab->serial = next_serial_++;
  const auto room = rooms_.insert(room_of(*slab)).first;
  slabs_.emplace(slab->data(), std::move(slab));
  // Taken before any other thread can see the slab: the maker never goes away empty-handed.
  take(room, bytes, parts);
  return true;
}

void HostPool::take(std::set<Room>::iterator room, std::size_t bytes, Parts& parts) {
  Slab& slab = *std::get<Slab*>(*room);
  rooms_.erase(room);
  const std::size_t offset = slab.parts.try_take(bytes).value();
  rooms_.insert(room_of(slab));
  block_bytes_ += bytes;
  parts.emplace_back(slab.data() + offset, bytes);
}

bool HostPool::may_stay_idle(std::size_t bytes, const Parts& gathered) const {
  const MutexLock lock(mutex_);
  std::size_t stored = block_bytes_;
  for (const HostBlock::Part part : gathered) {
    stored -= part.size();
  }
  return budget_.used() - stored <= (stored + bytes) / kIdleShare;
}

std::unique_ptr<HostPool::Slab> HostPool::make_slab(std::size_t bytes) {
  const std::size_t shared =
      std::min(slab_bytes_, std::max(kLeastSlabBytes, budget_.used() / kGrowthShare));
  const std::size_t rest = std::min(shared, round_down(budget_.available()));
  const std::size_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  for (const std::size_t size : {bytes < shared ? shared : pages, std::max(bytes, rest), bytes}) {
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

std::vector<HostPool::Slab*> HostPool::empty_slabs() const {
  std::vector<Slab*> empty;  // the largest first
  for (auto room = rooms_.rbegin(); room != rooms_.rend(); ++room) {
    Slab* slab = std::get<Slab*>(*room);
    if (slab->parts.untouched()) {
      empty.push_back(slab);
    }
  }
  return empty;
}

std::unique_ptr<HostPool::Slab> HostPool::remove(Slab& slab) {
  rooms_.erase(room_of(slab));
  return std::move(slabs_.extract(slab.data()).mapped());
}

HostBlock HostPool::block_of(Parts parts, std::size_t bytes) {
  parts.back() = parts.back().first(parts.back().size() - (round_up(bytes) - bytes));
  const MutexLock lock(mutex_);
  peak_block_bytes_ = std::max(peak_block_bytes_, block_bytes_);
  recent_.note(block_bytes_);
  return {*this, std::move(parts), bytes};
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
