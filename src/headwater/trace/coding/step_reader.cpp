#include "headwater/trace/coding/step_reader.h"

#include "headwater/trace/coding/runs.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace headwater::coding {
namespace {

// The inverse of distances_of().
Ordinal tensor_at(const ByteReader& in, Distance distance, Ordinal& next) {
  if (distance == 0) {
    return next++;
  }
  if (distance > next) {
    in.fail("an operator uses tensor " + std::to_string(distance) + " before the last of " +
            std::to_string(next));
  }
  return next - static_cast<Ordinal>(distance);
}

}  // namespace

StepTrace StepReader::read(ByteReader& in) {
  StepImage image;
  image.step = StepId(in.difference(history_.last_step.value() + 1));
  const PastStep* base =
      history_.base(in.number_up_to(history_.past.size(), "the distance of a step's base"));
  Likeness like(base == nullptr ? nullptr : &base->image);
  read_ops(in, image, like);
  image.ids.resize(like.num_tensors());
  IdGuesses guesses(base, like, history_.last_ids);
  read_ids(in, image, guesses);
  read_times(in, image, like);
  if (in.left() != 0) {
    in.fail("a step is followed by " + std::to_string(in.left()) + " bytes of no meaning");
  }
  std::optional<StepTrace> trace = try_put_together(image, shapes_);
  if (!trace) {
    in.fail("the accesses of a step are not where its operators have them");
  }
  history_.keep({std::move(image), guesses.renewed()});
  return *std::move(trace);
}

void StepReader::read_ops(ByteReader& in, StepImage& image, Likeness& like) {
  while (!ended(image)) {
    read_literals(in, image, like);
    if (!ended(image)) {
      read_run(in, image, like);
    }
  }
}

void StepReader::read_literals(ByteReader& in, StepImage& image, Likeness& like) {
  for (std::size_t left = in.count("the number of operators written out"); left > 0; --left) {
    if (ended(image)) {
      in.fail("operators follow the end of a step");
    }
    read_literal(in, image, like);
  }
}

void StepReader::read_literal(ByteReader& in, StepImage& image, Likeness& like) {
  const std::uint64_t token = in.number();
  const bool guessed = (token & 1) == 0;
  const ShapeNumber shape = read_shape_number(in, token >> 1);
  count_records(in, shapes_[shape]);
  const ShapeNumber before = image.shapes.empty() ? kNoShape : image.shapes.back();
  Ordinal next = like.num_tensors();
  std::vector<Ordinal> tensors;
  for (DistanceGuess& guess : history_.distances.of(before, shape, shapes_[shape].slots.size())) {
    const Distance distance = guessed ? guess.guess() : in.difference(guess.guess());
    tensors.push_back(tensor_at(in, distance, next));
    guess.learn(distance);
  }
  image.add(shape, tensors);
  like.take_literal(shape, tensors);
}

ShapeNumber StepReader::read_shape_number(ByteReader& in, std::uint64_t number) {
  if (number > shapes_.size()) {
    in.fail("an operator is like number " + std::to_string(number) + " of " +
            std::to_string(shapes_.size()));
  }
  if (number == shapes_.size()) {
    shapes_.push_back(read_shape(in));
  }
  return static_cast<ShapeNumber>(number);
}

void StepReader::read_run(ByteReader& in, StepImage& image, Likeness& like) {
  const std::uint64_t length = in.number();
  const std::uint64_t first = in.difference(like.expected());
  const std::uint64_t num_places = like.base() == nullptr ? 0 : like.base()->num_shapes();
  if (length == 0 || first >= num_places || length > num_places - first) {
    in.fail("operators are like " + std::to_string(length) + " from " + std::to_string(first) +
            " on, of a step with " + std::to_string(num_places));
  }
  for (std::uint64_t i = 0; i < length; ++i) {
    const auto place = static_cast<Position>(first + i);
    count_records(in, shapes_[like.shape(place)]);
    image.add(like.shape(place), like.guess(place));
    like.take(place, image.tensors_of(image.num_shapes() - 1));
  }
}

void StepReader::read_ids(ByteReader& in, StepImage& image, IdGuesses& guesses) const {
  RunReader runs(in);
  const std::vector<Source> sources = sources_of(image, shapes_);
  for (Ordinal tensor = 0; tensor < image.ids.size(); ++tensor) {
    const TensorId guess = guesses.guess(tensor, sources[tensor]);
    const Entry entry = runs.next();
    if (entry == Entry::kUnknown) {
      in.fail("a tensor has no id");
    }
    image.ids[tensor] = entry == Entry::kGuessed ? guess : TensorId(in.difference(guess.value()));
    guesses.learn(image.ids[tensor], sources[tensor]);
  }
  runs.finish();
}

void StepReader::read_times(ByteReader& in, StepImage& image, const Likeness& like) {
  RunReader runs(in);
  for (Position position = 0; position + 1 < image.num_shapes(); ++position) {
    const Entry entry = runs.next();
    if (entry == Entry::kUnknown) {
      image.times_ns.push_back(kUnknownTime);
      continue;
    }
    const ShapeNumber shape = image.shapes[position];
    const std::uint64_t guess = history_.times.guess(like, position, shape);
    image.times_ns.push_back(entry == Entry::kGuessed ? guess : in.difference(guess));
    history_.times.learn(shape, image.times_ns.back());
  }
  runs.finish();
}

void StepReader::count_records(const ByteReader& in, const OpShape& shape) {
  history_.num_records += 1 + shape.slots.size();
  if (history_.num_records > history_.most_records) {
    in.fail("steps have more than " + std::to_string(history_.most_records) +
            " operators, accesses and releases");
  }
}

bool StepReader::ended(const StepImage& image) const {
  return !image.shapes.empty() && shapes_[image.shapes.back()].kind == OpShape::Kind::kEnd;
}

}  // namespace headwater::coding
