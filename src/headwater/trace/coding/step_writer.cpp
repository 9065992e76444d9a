#include "headwater/trace/coding/step_writer.h"

#include "headwater/base/error.h"
#include "headwater/trace/coding/runs.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace headwater::coding {
namespace {

// How far from the expected place another one is looked for.
constexpr Position kWindow = 512;
// Operators in a row that must be like those of a place before it is jumped to: a jump costs about
// as much as an operator that is written out, and leaves the place expected all along.
constexpr Position kLeastRun = 4;

bool is_like(const StepImage& image, Likeness& like, Position position, Position place) {
  return position < image.num_shapes() && like.has(place) &&
         like.shape(place) == image.shapes[position] &&
         std::ranges::equal(like.guess(place), image.tensors_of(position));
}

bool worth_a_jump(const StepImage& image, Likeness& like, Position position, Position place) {
  for (Position i = 1; i < kLeastRun; ++i) {
    if (position + i >= image.num_shapes()) {
      break;
    }
    if (!like.has(place + i) || like.shape(place + i) != image.shapes[position + i]) {
      return false;
    }
  }
  return is_like(image, like, position, place);
}

std::optional<Position> find_place(const StepImage& image, Likeness& like, Position position) {
  const Position expected = like.expected();
  if (is_like(image, like, position, expected)) {
    return expected;
  }
  for (Position i = 1; i <= kWindow; ++i) {
    if (worth_a_jump(image, like, position, expected + i)) {
      return expected + i;
    }
    if (i <= expected && worth_a_jump(image, like, position, expected - i)) {
      return expected - i;
    }
  }
  return std::nullopt;
}

std::size_t count_equal(const std::vector<ShapeNumber>& left,
                        const std::vector<ShapeNumber>& right) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    count += left[i] == right[i] ? 1U : 0U;
  }
  return count;
}

}  // namespace

std::vector<std::byte> StepWriter::write(const StepTrace& trace) {
  count_records(trace);
  StepImage image = take_apart(trace, shapes_);
  const std::size_t distance = choose_base(image);
  const PastStep* base = history_.base(distance);
  Likeness like(base == nullptr ? nullptr : &base->image);
  ByteWriter out;
  out.difference(history_.last_step.value() + 1, image.step.value());
  out.number(distance);
  write_ops(out, image, like);
  IdGuesses guesses(base, like, history_.last_ids);
  write_ids(out, image, guesses);
  write_times(out, image, like);
  history_.keep({std::move(image), guesses.renewed()});
  return out.written();
}

void StepWriter::count_records(const StepTrace& trace) {
  history_.num_records += trace.ops.size() + 1 + trace.accesses.size() + trace.releases.size();
  if (history_.num_records > history_.most_records) {
    throw InvalidArgument(
        "Steps are too many for a trace file. Write them to several files: more than " +
        std::to_string(history_.most_records) + " operators, accesses and releases at step " +
        std::to_string(trace.step.value()));
  }
}

// The one with the most operators in the same places; of equal ones the last.
std::size_t StepWriter::choose_base(const StepImage& image) const {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t distance = 1; distance <= history_.past.size(); ++distance) {
    const std::size_t count = count_equal(image.shapes, history_.base(distance)->image.shapes);
    if (count > most) {
      most = count;
      best = distance;
    }
  }
  return best;
}

void StepWriter::write_ops(ByteWriter& out, const StepImage& image, Likeness& like) {
  Position position = 0;
  while (position < image.num_shapes()) {
    position = write_literals(out, image, like, position);
    if (position < image.num_shapes()) {
      position = write_run(out, image, like, position);
    }
  }
}

Position StepWriter::write_literals(ByteWriter& out,
                                    const StepImage& image,
                                    Likeness& like,
                                    Position first) {
  ByteWriter literals;
  Position position = first;
  while (position < image.num_shapes() && !find_place(image, like, position)) {
    write_literal(literals, image, like, position);
    like.take_literal(image.shapes[position], image.tensors_of(position));
    ++position;
  }
  out.number(position - first);
  out.bytes(literals.written());
  return position;
}

void StepWriter::write_literal(ByteWriter& out,
                               const StepImage& image,
                               const Likeness& like,
                               Position position) {
  const ShapeNumber shape = image.shapes[position];
  const ShapeNumber before = position == 0 ? kNoShape : image.shapes[position - 1];
  const std::vector<Distance> distances =
      distances_of(image.tensors_of(position), like.num_tensors());
  const std::span<DistanceGuess> guesses = history_.distances.of(before, shape, distances.size());
  const bool guessed = std::ranges::equal(distances, guesses, {}, {}, &DistanceGuess::guess);
  out.number(std::uint64_t{shape} << 1 | (guessed ? 0U : 1U));
  if (shape == num_written_) {
    write_shape(out, shapes_[shape]);
    ++num_written_;
  }
  for (std::size_t i = 0; i < distances.size(); ++i) {
    if (!guessed) {
      out.difference(guesses[i].guess(), distances[i]);
    }
    guesses[i].learn(distances[i]);
  }
}

Position StepWriter::write_run(ByteWriter& out,
                               const StepImage& image,
                               Likeness& like,
                               Position first) {
  const Position expected = like.expected();
  const Position begin = *find_place(image, like, first);
  Position length = 0;
  do {
    like.take(begin + length, image.tensors_of(first + length));
    ++length;
  } while (is_like(image, like, first + length, begin + length));
  out.number(length);
  out.difference(expected, begin);
  return first + length;
}

void StepWriter::write_ids(ByteWriter& out, const StepImage& image, IdGuesses& guesses) const {
  RunWriter runs(out);
  const std::vector<Source> sources = sources_of(image, shapes_.shapes());
  for (Ordinal tensor = 0; tensor < image.ids.size(); ++tensor) {
    const TensorId guess = guesses.guess(tensor, sources[tensor]);
    if (guess == image.ids[tensor]) {
      runs.guessed();
    } else {
      runs.given(guess.value(), image.ids[tensor].value());
    }
    guesses.learn(image.ids[tensor], sources[tensor]);
  }
  runs.finish();
}

void StepWriter::write_times(ByteWriter& out, const StepImage& image, const Likeness& like) {
  RunWriter runs(out);
  for (Position position = 0; position < image.times_ns.size(); ++position) {
    const std::uint64_t time_ns = image.times_ns[position];
    if (time_ns == kUnknownTime) {
      runs.unknown();
      continue;
    }
    const ShapeNumber shape = image.shapes[position];
    const std::uint64_t guess = history_.times.guess(like, position, shape);
    if (guess == time_ns) {
      runs.guessed();
    } else {
      runs.given(guess, time_ns);
    }
    history_.times.learn(shape, time_ns);
  }
  runs.finish();
}

}  // namespace headwater::coding
