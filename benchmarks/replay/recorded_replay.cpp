#include "headwater/base/check.h"
#include "recorded_training.h"

#include <algorithm>
#include <map>
#include <utility>

namespace headwater::replay {

void RecordedTraining::replay(std::span<const Use> uses) {
  std::vector<Ordinal> wanted;
  for (const Use& use : uses) {
    if (use.tensor->residency == Residency::kGivenUp) {
      wanted.push_back(ordinal_of(*use.tensor));
    }
  }
  if (wanted.empty()) {
    return;
  }
  for (const Tensor* tensor : conductor_.due_back()) {
    if (tensor->residency == Residency::kGivenUp) {
      wanted.push_back(ordinal_of(*tensor));
    }
  }
  const std::vector<ToMake> order = replay_order(std::move(wanted));
  for (std::size_t i = 0; i < order.size(); ++i) {
    make_again(order[i]);
    for (std::size_t input = 0; input < i; ++input) {
      Tensor*& on_the_way = again_[order[input].tensor];
      if (order[input].last_reader == i && on_the_way != nullptr) {
        free(*std::exchange(on_the_way, nullptr));
      }
    }
  }
}

std::vector<RecordedTraining::ToMake> RecordedTraining::replay_order(
    std::vector<Ordinal> wanted) const {
  std::vector<ToMake> order;
  std::map<Ordinal, std::size_t> places;
  while (!wanted.empty()) {
    const Ordinal tensor = wanted.back();
    wanted.pop_back();
    const Tensor* const now = tensors_[tensor];
    const bool there = now != nullptr && now->residency != Residency::kGivenUp;
    if (there || writers_.writers(tensor).empty() || !places.emplace(tensor, 0).second) {
      continue;
    }
    order.push_back({.tensor = tensor, .comes_back = now != nullptr});
    for (const Position writer : writers_.writers(tensor)) {
      for (const Touch& touch : step_.liveness.touches(writer)) {
        if (touch.kind == AccessKind::kRead) {
          wanted.push_back(touch.tensor);
        }
      }
    }
  }
  std::sort(order.begin(), order.end(), [this](const ToMake& left, const ToMake& right) {
    return writers_.written_before(left.tensor, right.tensor);
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    places[order[i].tensor] = i;
    order[i].last_reader = i;
    for (const Position writer : writers_.writers(order[i].tensor)) {
      for (const Touch& touch : step_.liveness.touches(writer)) {
        const auto read = places.find(touch.tensor);
        if (read != places.end()) {
          order[read->second].last_reader = std::max(order[read->second].last_reader, i);
        }
      }
    }
  }
  return order;
}

void RecordedTraining::make_again(const ToMake& made) {
  for (const Position writer : writers_.writers(made.tensor)) {
    run_again(writer, made.tensor);
  }
  if (made.comes_back) {
    Tensor& twin = *std::exchange(again_[made.tensor], nullptr);
    const MutexLock lock(rig_.cache.mutex());
    rig_.cache.take_over(*tensors_[made.tensor], twin);
    rig_.cache.forbid_replay(*tensors_[made.tensor]);
  }
}

void RecordedTraining::run_again(Position writer, Ordinal made) {
  const Liveness& liveness = step_.liveness;
  std::vector<Use> uses;
  std::size_t new_bytes = liveness.workspace_bytes(writer);
  for (const Touch& touch : liveness.touches(writer)) {
    Tensor* const now =
        again_[touch.tensor] != nullptr ? again_[touch.tensor] : tensors_[touch.tensor];
    if (touch.kind == AccessKind::kNew) {
      new_bytes += liveness.lifetimes()[touch.tensor].bytes;
    } else if (touch.tensor == made) {
      uses.push_back({again_[made], AccessKind::kWrite});
    } else if (now != nullptr) {
      uses.push_back({now, AccessKind::kRead});
    }
  }
  Reservation reserved = acquire(uses, new_bytes);
  rig_.device.compute(kDefaultStream, step_.costs.op_ns[writer]);
  reserved.release();
  if (again_[made] == nullptr) {
    again_[made] = make(liveness.lifetimes()[made].bytes);
  }
  release(uses);
}

Ordinal RecordedTraining::ordinal_of(const Tensor& tensor) const {
  const auto found = std::find(tensors_.begin(), tensors_.end(), &tensor);
  HEADWATER_CHECK(found != tensors_.end());
  return static_cast<Ordinal>(found - tensors_.begin());
}

}  // namespace headwater::replay
