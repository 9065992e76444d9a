#include "headwater/trace/coding/op_shape.h"

#include "headwater/base/error.h"

#include <gtest/gtest.h>

#include <vector>

namespace headwater::coding {
namespace {

OpShape example() {
  OpShape shape;
  shape.start = {.key = OpKey(0xFEDCBA9876543210),
                 .stream = 3,
                 .phase = Phase::kBackward,
                 .replay = Replay::kSeeded,
                 .wish = Wish::kRecompute};
  shape.made_placement = 1;
  shape.workspace_bytes = 1 << 20;
  shape.num_releases = 1;
  shape.num_uses = 2;
  shape.slots = {{.bytes = 5},
                 {.bytes = 700, .kind = AccessKind::kRead},
                 {.bytes = 700, .kind = AccessKind::kWrite, .packed = 255},
                 {.bytes = 10, .kind = AccessKind::kNew, .packed = 4}};
  return shape;
}

TEST(OpShapeTest, AShapeComesBack) {
  OpShape end;
  end.kind = OpShape::Kind::kEnd;
  for (const OpShape& shape : {OpShape(), example(), end}) {
    ByteWriter writer;
    write_shape(writer, shape);
    ByteReader reader(writer.written(), 0);
    EXPECT_EQ(read_shape(reader), shape);
    EXPECT_EQ(reader.left(), 0U);
  }
}

TEST(OpShapeTest, EveryTruncatedShapeIsRefused) {
  ByteWriter writer;
  write_shape(writer, example());
  for (std::size_t length = 0; length < writer.written().size(); ++length) {
    ByteReader reader({writer.written().data(), length}, 0);
    EXPECT_THROW(read_shape(reader), InvalidArgument);
  }
}

TEST(OpShapeTest, AnUnknownKindOfAccessIsRefused) {
  ByteWriter writer;
  write_shape(writer, example());
  std::vector<std::byte> bytes = writer.written();
  bytes.back() |= std::byte{3};
  ByteReader reader(bytes, 0);
  EXPECT_THROW(read_shape(reader), InvalidArgument);
}

TEST(OpShapeTest, EqualShapesHaveOneNumber) {
  ShapeTable table;
  EXPECT_EQ(table.number_of(example()), 0U);
  EXPECT_EQ(table.number_of(OpShape()), 1U);
  EXPECT_EQ(table.number_of(example()), 0U);
  EXPECT_EQ(table.shapes(), (std::vector<OpShape>{example(), OpShape()}));
}

TEST(OpShapeTest, PlacesOfRangesComeBack) {
  for (const std::uint32_t expected : {0U, 7U, 0xFFFFFFFFU}) {
    for (const std::uint32_t first : {0U, 6U, 7U, 8U, 0x80000000U, 0xFFFFFFFFU}) {
      for (const std::uint32_t count : {0U, 1U}) {
        EXPECT_EQ(first_of(placement_of({first, count}, expected), expected), first);
      }
    }
  }
  EXPECT_EQ(placement_of({7, 2}, 7), 0U);
  EXPECT_EQ(placement_of({}, 7), 1U);
}

}  // namespace
}  // namespace headwater::coding
