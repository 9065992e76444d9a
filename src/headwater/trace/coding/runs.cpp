#include "headwater/trace/coding/runs.h"

#include <utility>

namespace headwater::coding {
namespace {

constexpr unsigned kEntryBits = 2;

}  // namespace

void RunWriter::given(std::uint64_t guess, std::uint64_t value) {
  add(Entry::kGiven);
  given_.difference(guess, value);
}

void RunWriter::finish() {
  if (length_ > 0) {
    out_.number(length_ << kEntryBits | static_cast<unsigned>(entry_));
    out_.bytes(std::exchange(given_, {}).written());
    length_ = 0;
  }
}

void RunWriter::add(Entry entry) {
  if (entry != entry_) {
    finish();
    entry_ = entry;
  }
  ++length_;
}

Entry RunReader::next() {
  if (left_ == 0) {
    const std::uint64_t run = in_.number();
    left_ = run >> kEntryBits;
    const std::uint64_t entry = run & ((1U << kEntryBits) - 1);
    if (left_ == 0 || entry > static_cast<unsigned>(Entry::kUnknown)) {
      in_.fail("a run is empty or of no known kind");
    }
    entry_ = static_cast<Entry>(entry);
  }
  --left_;
  return entry_;
}

void RunReader::finish() const {
  if (left_ != 0) {
    in_.fail("a run is longer than its column by " + std::to_string(left_) + " entries");
  }
}

}  // namespace headwater::coding
