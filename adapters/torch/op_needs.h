#pragma once

#include "op_key.h"
#include "op_traits.h"
#include "working_sets.h"

#include <cstddef>
#include <optional>

namespace headwater::adapter {

class SessionState;

/// One tensor an operator is given.
struct TensorUse {
  const at::Tensor* tensor = nullptr;
  AccessKind access = AccessKind::kRead;
};

/// What one call of an operator needs beside its tensors: looked up or guessed before it runs,
/// measured while it runs where that has not been done. For one thread.
class OpNeeds final {
 public:
  OpNeeds(SessionState& session, const c10::OperatorHandle& op, const OpTraits& traits)
      : session_(session), op_(op), traits_(traits) {}

  /// Whether the new bytes fit beside everything that is on the device.
  bool fit_as_is(c10::ArrayRef<TensorUse> tensors, OpKeyOnce& key);
  /// The same once its tensors are known, with the cache's mutex held.
  bool still_fit() const;
  /// Makes the room that was counted on. False when there is none after all.
  bool make_room(StreamRef stream);
  /// The room to make.
  Request predict(Arguments arguments, OpKeyOnce& key);
  /// The operator runs from here, if its tensors are there.
  void begin();
  /// It has run. True when it was measured.
  bool end();

  /// What it allocates, as far as that is known or has been guessed.
  std::size_t new_bytes() const { return known_ ? known_->total : predicted_.total; }
  /// Beside its results, where known.
  std::size_t workspace_bytes() const;

 private:
  /// Whether there is room for more than such operators take, beside all that is in use.
  bool surely_fit(const ResultBound& results) const;
  bool surely_fit(Arguments arguments) const;
  /// Looks for unseen bytes at one in so many operators.
  void look_every(std::uint64_t num_ops);

  SessionState& session_;
  const c10::OperatorHandle& op_;
  const OpTraits& traits_;
  std::optional<NewBytes> known_;
  // set while the operator is being measured
  std::optional<OpKey> key_;
  NewBytes predicted_;
  std::optional<AllocatorCount> before_;
};

}  // namespace headwater::adapter
