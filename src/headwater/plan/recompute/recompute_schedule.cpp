#include "headwater/plan/recompute/recompute_schedule.h"

#include "headwater/base/error.h"

#include <algorithm>
#include <string>

namespace headwater {
namespace {

bool discarded(const RecomputeLayer& layer) {
  return layer.output == AfterForward::kDiscarded;
}

void check_order(std::span<const RecomputeLayer> layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const bool reads_ahead = layers[i].input != kNoLayer && layers[i].input >= i;
    const auto& needs = layers[i].needs;
    if (reads_ahead || std::ranges::any_of(needs, [i](std::size_t need) { return need > i; })) {
      throw InvalidArgument(
          "Layer reads what comes after it. Put layers in the order of forward: layer " +
          std::to_string(i));
    }
  }
}

/// Writes the schedule, knowing at each moment which discarded outputs have come back.
class Scheduler {
 public:
  Scheduler(std::span<const RecomputeLayer> layers, std::span<const RecomputeSegment> segments)
      : layers_(layers), segment_of_(layers.size()), there_(layers.size()) {
    for (const RecomputeSegment& segment : segments) {
      std::fill(segment_of_.begin() + static_cast<std::ptrdiff_t>(segment.begin),
                segment_of_.begin() + static_cast<std::ptrdiff_t>(segment.end),
                &segment);
    }
  }

  std::vector<LayerRun> run() {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      std::vector<std::size_t> needs = layers_[i].needs;
      std::ranges::sort(needs);  // what is made on the way to a later one is found there
      for (const std::size_t need : needs) {
        if (discarded(layers_[need]) && !there_[need]) {
          bring_back(need, needs);
        }
      }
      runs_.push_back({Phase::kBackward, i});
    }
    return std::move(runs_);
  }

 private:
  void bring_back(std::size_t wanted, const std::vector<std::size_t>& needs) {
    const RecomputeSegment& segment = *segment_of_[wanted];
    std::size_t first = wanted;
    while (first > segment.begin && !there_[first - 1]) {
      --first;
    }
    for (std::size_t i = first; i <= wanted; ++i) {
      runs_.push_back({Phase::kForward, i});
      there_[i] = true;
      const bool on_the_way = i > first && !std::ranges::binary_search(needs, i - 1);
      if (on_the_way && segment.choice == RecomputeChoice::kMemory) {
        there_[i - 1] = false;
      }
    }
  }

  const std::span<const RecomputeLayer> layers_;
  std::vector<const RecomputeSegment*> segment_of_;
  std::vector<bool> there_;
  std::vector<LayerRun> runs_;
};

/// Finds from when to when each output is on the device.
class Stays {
 public:
  Stays(std::span<const RecomputeLayer> layers, std::span<const LayerRun> schedule)
      : layers_(layers), current_(layers.size(), kNoLayer) {
    for (std::size_t at = 0; at < schedule.size(); ++at) {
      const RecomputeLayer& layer = layers[schedule[at].layer];
      if (schedule[at].phase == Phase::kForward) {
        read(layer.input, at);
        current_[schedule[at].layer] = kNoLayer;  // another output takes the place of the last
        read(schedule[at].layer, at);
        continue;
      }
      for (const std::size_t need : layer.needs) {
        read(need, at);
      }
    }
  }

  void add_to(std::vector<std::size_t>& curve) const {
    std::vector<std::size_t> changes(curve.size() + 1);  // less is a large number that wraps round
    for (const Stay& stay : stays_) {
      changes[stay.first] += stay.bytes;
      changes[stay.last + 1] -= stay.bytes;
    }
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < curve.size(); ++at) {
      bytes += changes[at];
      curve[at] += bytes;
    }
  }

 private:
  struct Stay {
    std::size_t bytes;
    std::size_t first;
    std::size_t last;
  };

  void read(std::size_t layer, std::size_t at) {
    if (layer == kNoLayer) {
      return;
    }
    if (current_[layer] == kNoLayer) {
      current_[layer] = stays_.size();
      stays_.push_back({layers_[layer].output_bytes, at, at});
    }
    stays_[current_[layer]].last = at;
  }

  const std::span<const RecomputeLayer> layers_;
  std::vector<std::size_t> current_;  // place of a layer's last output among the stays
  std::vector<Stay> stays_;
};

}  // namespace

std::vector<RecomputeSegment> find_segments(std::span<const RecomputeLayer> layers) {
  check_order(layers);
  std::vector<RecomputeSegment> segments;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!discarded(layers[i])) {
      continue;
    }
    const bool goes_on = !segments.empty() && segments.back().end == i && layers[i].input == i - 1;
    if (goes_on) {
      segments.back().end = i + 1;
    } else {
      segments.push_back({.begin = i, .end = i + 1});
    }
  }
  return segments;
}

std::vector<LayerRun> schedule_backward(std::span<const RecomputeLayer> layers,
                                        std::span<const RecomputeSegment> segments) {
  return Scheduler(layers, segments).run();
}

std::vector<std::size_t> memory_curve(std::span<const RecomputeLayer> layers,
                                      std::span<const LayerRun> schedule) {
  std::vector<std::size_t> curve(schedule.size());
  std::size_t gradient_bytes = 0;  // those of the next backward are there while layers come back
  for (std::size_t at = schedule.size(); at-- > 0;) {
    const RecomputeLayer& layer = layers[schedule[at].layer];
    if (schedule[at].phase == Phase::kBackward) {
      gradient_bytes = layer.gradient_bytes;
      curve[at] = layer.new_bytes;
    }
    curve[at] += gradient_bytes;
  }
  Stays(layers, schedule).add_to(curve);
  return curve;
}

}  // namespace headwater
