#include "op_needs.h"

#include "session_state.h"
#include "tensor_walk.h"

#include <algorithm>

namespace headwater::adapter {
namespace {

// A look takes about as long as a small operator.
constexpr std::uint64_t kOpsBetweenLooks = 64;

}  // namespace

bool OpNeeds::fit_as_is(c10::ArrayRef<TensorUse> tensors, OpKeyOnce& key) {
  const bool list = traits_.path == OpPath::kList;
  const bool watched = session_.runtime().conductor().watching();
  if (list && watched) {
    return false;  // runs in pieces
  }
  const bool must_predict = session_.must_predict(traits_);
  if (session_.device().is_cpu() && !list) {
    return !must_predict;  // its allocator asks for every byte
  }
  if (watched) {
    look_every(kOpsBetweenLooks);
  }
  if (list || (!must_predict && !watched)) {
    ResultBound results(traits_.growth);
    for (const TensorUse& use : tensors) {
      results.add(*use.tensor);
    }
    if (list) {  // results are as large as one of the lists
      const Budget& budget = session_.runtime().budget();
      const std::size_t made = traits_.num_returns > 0 ? results.given() : 0;
      return budget.used() + session_.unseen_bytes() + made <= budget.limit();
    }
    if (surely_fit(results)) {
      return true;
    }
  }
  known_ = session_.working_sets().find(key());
  return known_ && still_fit();
}

bool OpNeeds::surely_fit(Arguments arguments) const {
  if (session_.device().is_cpu() || traits_.path == OpPath::kList) {
    return true;  // the allocator asks for every byte; lists run in pieces that fit
  }
  ResultBound results(traits_.growth);
  for (const TensorArgument& argument : traits_.tensors) {
    results.add(arguments[argument.index]);
  }
  return surely_fit(results);
}

bool OpNeeds::surely_fit(const ResultBound& results) const {
  const Budget& budget = session_.runtime().budget();
  const std::size_t used = budget.used() + session_.unseen_bytes();
  const std::size_t workspace =
      session_.working_sets().most_workspace(traits_.workspace, results.given());
  const std::optional<std::size_t> made = results.bytes();
  return made && used + workspace + *made <= budget.limit();
}

bool OpNeeds::still_fit() const {
  const Budget& budget = session_.runtime().budget();
  if (traits_.path == OpPath::kList) {  // its parts may have been found just now, and be too much
    return budget.used() <= budget.limit();
  }
  return !known_ || session_.cache().has_room(known_->total + session_.unseen_bytes());
}

bool OpNeeds::make_room(StreamRef stream) {
  if (!known_) {
    return true;
  }
  session_.cache().mutex().assume_held();
  const std::size_t room = known_->total + session_.unseen_bytes();
  session_.cache().settle(room, stream);
  const Budget& budget = session_.runtime().budget();
  return budget.used() + room <= budget.limit();
}

Request OpNeeds::predict(Arguments arguments, OpKeyOnce& key) {
  Request request{.op = traits_.name, .spare_bytes = session_.unseen_bytes()};
  if (!session_.must_predict(traits_) && surely_fit(arguments)) {
    return request;
  }
  look_every(kOpsBetweenLooks / 4);
  WorkingSets& sets = session_.working_sets();
  known_ = sets.find(key());
  if (!known_) {
    const std::size_t available = session_.runtime().budget().available();
    const std::size_t room = available - std::min(available, session_.unseen_bytes());
    predicted_ = sets.predict(op_, traits_, arguments, room);
    key_ = key();
  }
  const NewBytes& bytes = known_ ? *known_ : predicted_;
  request.new_bytes = bytes.outputs;
  if (session_.device().is_cpu()) {
    return request;  // its allocator asks for whatever else there is
  }
  request.spare_bytes = bytes.workspace() + session_.unseen_bytes();
  return request;
}

void OpNeeds::begin() {
  if (key_) {
    before_ = session_.working_sets().count();
  }
}

bool OpNeeds::end() {
  if (key_ && session_.device().is_cpu()) {  // nobody counts there, nor has to
    NewBytes outputs = predicted_;
    outputs.total = outputs.outputs;
    session_.working_sets().learn(*key_, traits_, outputs);
    return false;
  }
  const std::optional<AllocatorCount> after = before_ ? session_.working_sets().count() : before_;
  if (!after) {
    return false;
  }
  known_ = predicted_;
  known_->total = after->so_far - before_->so_far;
  session_.working_sets().learn(*key_, traits_, *known_);
  return true;
}

void OpNeeds::look_every(std::uint64_t num_ops) {
  if (session_.num_ops() % num_ops == 0) {
    session_.look_for_unseen_bytes();
  }
}

std::size_t OpNeeds::workspace_bytes() const {
  return known_ ? known_->workspace() : 0;
}

}  // namespace headwater::adapter
