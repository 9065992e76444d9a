#include "list_ops.h"

#include "interceptor.h"
#include "session_state.h"
#include "tensor_walk.h"

#include <ATen/core/List.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

namespace headwater::adapter {
namespace {

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// How many elements the lists have: the length of the first list of tensors.
std::size_t list_length(Arguments arguments) {
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensorList()) {
      return argument.toListRef().size();
    }
  }
  return 0;
}

/// A tensor of one number for each element, such as `scalars`.
bool one_number_each(const c10::IValue& value, const c10::Argument& argument, std::size_t length) {
  return argument.name() == "scalars" && value.isTensor() && value.toTensor().dim() == 1 &&
         static_cast<std::size_t>(value.toTensor().numel()) == length;
}

bool divides(const c10::IValue& value, std::size_t length) {
  return value.isList() && value.toListRef().size() == length;
}

c10::IValue piece(const c10::IValue& value,
                  const c10::Argument& argument,
                  Range range,
                  std::size_t length) {
  if (one_number_each(value, argument, length)) {
    return value.toTensor().narrow(0,
                                   static_cast<std::int64_t>(range.begin),
                                   static_cast<std::int64_t>(range.end - range.begin));
  }
  if (!divides(value, length)) {
    return value;
  }
  const c10::List<c10::IValue> whole = value.toList();
  c10::impl::GenericList part(whole.elementType());
  for (std::size_t i = range.begin; i < range.end; ++i) {
    part.push_back(whole.get(i));
  }
  return part;
}

using Storages = c10::SmallVector<const c10::StorageImpl*, 8>;

void add_once(const c10::StorageImpl& storage, Storages& storages) {
  if (std::find(storages.begin(), storages.end(), &storage) == storages.end()) {
    storages.push_back(&storage);
  }
}

/// The distinct storages of element `i` in all lists. There are a few, and operators have hundreds
/// of elements: they are compared with each other, without a set of their own.
Storages element_storages(Arguments arguments, std::size_t i, std::size_t length) {
  Storages storages;
  for (const c10::IValue& argument : arguments) {
    if (divides(argument, length)) {
      for_each_storage(argument.toListRef()[i],
                       [&](c10::StorageImpl& storage, Adoption) { add_once(storage, storages); });
    }
  }
  return storages;
}

/// Bytes of element `i` in all lists, and of a result like it.
std::size_t element_bytes(Arguments arguments,
                          std::size_t i,
                          std::size_t length,
                          bool has_results) {
  std::size_t bytes = 0;
  std::size_t largest = 0;
  for (const c10::StorageImpl* storage : element_storages(arguments, i, length)) {
    bytes += storage->nbytes();
    largest = std::max(largest, storage->nbytes());
  }
  return bytes + (has_results ? largest : 0);
}

/// No fewer bytes than all lists and their results have together, found without looking for
/// storages that occur twice.
std::size_t most_bytes(Arguments arguments) {
  std::size_t bytes = 0;
  for (const c10::IValue& argument : arguments) {
    for_each_storage(argument,
                     [&bytes](c10::StorageImpl& storage, Adoption) { bytes += storage.nbytes(); });
  }
  return 2 * bytes;
}

/// As many elements from the beginning of the range as fit `room`, and at least one.
Range first_that_fit(const std::vector<std::size_t>& bytes, Range range, std::size_t room) {
  std::size_t end = range.begin + 1;
  std::size_t sum = bytes[range.begin];
  while (end < range.end && sum + bytes[end] <= room) {
    sum += bytes[end++];
  }
  return {range.begin, end};
}

/// Bytes an operator may have on the device at once.
std::size_t room_for_operators(SessionState& session) {
  const std::size_t room = session.runtime().unpinned_bytes();
  return room - std::min(room, session.unseen_bytes());
}

/// Drops all but the leading bits, so that what varies little gives the same from step to step.
std::size_t round_down(std::size_t bytes) {
  constexpr int kKept = 3;
  const int dropped = std::max(0, static_cast<int>(std::bit_width(bytes)) - kKept);
  return bytes >> dropped << dropped;
}

/// What a piece may have on the device.
std::size_t room_for_a_piece(SessionState& session) {
  const std::optional<std::size_t> piece = piece_bytes(session);
  return piece ? *piece : room_for_operators(session);
}

void append(torch::jit::Stack& results, torch::jit::Stack piece_results) {
  if (results.empty()) {
    results = std::move(piece_results);
    return;
  }
  for (std::size_t i = 0; i < piece_results.size(); ++i) {
    c10::List<c10::IValue> all = results[i].toList();
    for (const c10::IValue& element : piece_results[i].toListRef()) {
      all.push_back(element);
    }
  }
}

/// One operator over lists, run piece by piece.
class Pieces {
 public:
  Pieces(SessionState& session,
         const c10::OperatorHandle& op,
         const OpTraits& traits,
         c10::DispatchKeySet keys,
         Arguments arguments,
         std::vector<std::size_t> bytes)
      : session_(session),
        op_(op),
        traits_(traits),
        keys_(keys),
        arguments_(arguments),
        bytes_(std::move(bytes)) {}

  /// The largest element goes first: if it does not fit, nothing has been written yet.
  torch::jit::Stack run() {
    const auto largest =
        static_cast<std::size_t>(std::max_element(bytes_.begin(), bytes_.end()) - bytes_.begin());
    run_piece({largest, largest + 1});
    run_range({0, largest});
    run_range({largest + 1, bytes_.size()});
    torch::jit::Stack results;
    for (auto& [begin, part] : done_) {
      append(results, std::move(part));
    }
    return results;
  }

 private:
  void run_range(Range range) {
    while (range.begin < range.end) {
      Range next = first_that_fit(bytes_, range, room_for_a_piece(session_));
      // Another thread may have lowered the budget meanwhile: a smaller piece still fits.
      while (next.end > next.begin + 1 && !try_run_piece(next)) {
        next.end -= (next.end - next.begin) / 2;
      }
      if (next.end == next.begin + 1) {
        run_piece(next);
      }
      range.begin = next.end;
    }
  }

  bool try_run_piece(Range range) {
    torch::jit::Stack part = arguments_of(range);
    const bool ran = try_run_managed(session_, op_, traits_, keys_, part);
    if (ran) {
      done_.emplace(range.begin, std::move(part));
    }
    return ran;
  }

  void run_piece(Range range) {
    torch::jit::Stack part = arguments_of(range);
    run_managed(session_, op_, traits_, keys_, part);
    done_.emplace(range.begin, std::move(part));
  }

  torch::jit::Stack arguments_of(Range range) const {
    torch::jit::Stack part;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      part.push_back(piece(arguments_[i], op_.schema().arguments()[i], range, bytes_.size()));
    }
    return part;
  }

  SessionState& session_;
  const c10::OperatorHandle& op_;
  const OpTraits& traits_;
  const c10::DispatchKeySet keys_;
  const Arguments arguments_;
  const std::vector<std::size_t> bytes_;
  std::map<std::size_t, torch::jit::Stack> done_;  // by first element
};

/// False, with its arguments on the stack as before, where they do not fit together after all.
bool try_run_whole(SessionState& session,
                   const c10::OperatorHandle& op,
                   const OpTraits& traits,
                   c10::DispatchKeySet keys,
                   torch::jit::Stack& stack) {
  torch::jit::Stack whole = torch::jit::last(stack, traits.num_arguments).vec();
  if (!try_run_managed(session, op, traits, keys, whole)) {
    return false;
  }
  torch::jit::drop(stack, traits.num_arguments);
  std::move(whole.begin(), whole.end(), std::back_inserter(stack));
  return true;
}

}  // namespace

std::optional<std::size_t> piece_bytes(SessionState& session) {
  constexpr std::size_t kPiecesAtOnce = 3;
  // A longer one would begin and end later; many short ones keep the host from running ahead, since
  // an optimizer takes a dozen operators a piece.
  constexpr std::size_t kWantedPieces = 16;
  constexpr std::size_t kWantedBytes = std::size_t{512} << 20;
  if (!session.runtime().room_is_short()) {
    return std::nullopt;
  }
  const std::size_t budget = session.runtime().budget().limit();
  const std::size_t wanted = std::max(round_down(budget / kWantedPieces), kWantedBytes);
  return std::min(wanted, round_down(room_for_operators(session) / kPiecesAtOnce));
}

void run_list_op(SessionState& session,
                 const c10::OperatorHandle& op,
                 const OpTraits& traits,
                 c10::DispatchKeySet keys,
                 torch::jit::Stack& stack) {
  const Arguments arguments = torch::jit::last(stack, traits.num_arguments);
  const std::size_t length = list_length(arguments);
  const std::size_t room = room_for_a_piece(session);
  if (length < 2) {
    run_managed(session, op, traits, keys, stack);
    return;
  }
  if (most_bytes(arguments) <= room && try_run_whole(session, op, traits, keys, stack)) {
    return;
  }
  std::vector<std::size_t> bytes(length);
  for (std::size_t i = 0; i < length; ++i) {
    bytes[i] = element_bytes(arguments, i, length, traits.num_returns > 0);
  }
  if (first_that_fit(bytes, {0, length}, room).end == length &&
      try_run_whole(session, op, traits, keys, stack)) {
    return;
  }
  session.count_chunked_op();
  torch::jit::Stack results = Pieces(session, op, traits, keys, arguments, std::move(bytes)).run();
  torch::jit::drop(stack, traits.num_arguments);
  std::move(results.begin(), results.end(), std::back_inserter(stack));
}

}  // namespace headwater::adapter
