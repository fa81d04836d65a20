// Blocks of tensors: tails, axes, channels, rows; each element in one block, in tensor order.
#include "formats/blocks/block_layout.hpp"

#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace block_layout_test {

using namespace numemu;
using Catch::Contains;
using Shape = std::vector<std::int64_t>;

namespace {

BlockLayout layout_of(const char* format, const Shape& shape, int axis = -1) {
  return block_layout(find_block_format(format), shape, axis);
}

/// The multi-index of element i.
Shape index_of(const Shape& shape, std::int64_t i) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0; i /= shape[d]) index[d] = i % shape[d];
  return index;
}

}  // namespace

TEST_CASE("blocks follow their axis and the last one of a line is short", "[fast]") {
  const Shape shape = {3, 5, 4};
  for (int axis = -3; axis < 3; ++axis) {
    const std::size_t a = static_cast<std::size_t>(axis < 0 ? axis + 3 : axis);
    for (const int size : {1, 2, 3, 5, 32}) {
      const BlockLayout layout =
          layout_of(("mx(e2m1," + std::to_string(size) + ")").c_str(), shape, axis);
      Shape scales = shape;
      scales[a] = (shape[a] + size - 1) / size;
      CHECK(layout.scale_shape == scales);
      CHECK(layout.blocks == scales[0] * scales[1] * scales[2]);
      CHECK(layout.elements() == 60);
      std::vector<int> seen(60);
      for (std::int64_t b = 0; b < layout.blocks; ++b) {
        const Shape block = index_of(scales, b);
        const BlockElements elements = layout.block(b);
        const std::int64_t tail = shape[a] - block[a] * size;
        CHECK(elements.size() == std::min<std::int64_t>(size, tail));
        Shape visited;
        elements.for_each([&](std::int64_t i) { visited.push_back(i); });
        CHECK(static_cast<std::int64_t>(visited.size()) == elements.size());
        for (std::int64_t k = 0; k < elements.size(); ++k) {
          const std::int64_t i = elements.at(k);
          CHECK(visited[k] == i);
          Shape expected = block;
          expected[a] = block[a] * size + k;
          CHECK(index_of(shape, i) == expected);
          CHECK(layout.block_of(i) == b);
          ++seen[static_cast<std::size_t>(i)];
        }
      }
      CHECK(seen == std::vector<int>(60, 1));
      CHECK(layout.block(0).contiguous() == (a == 2));
    }
  }
}

TEST_CASE("tensors, channels and rows are single blocks", "[fast]") {
  const Shape shape = {3, 5, 4};
  const BlockLayout tensor = layout_of("group(int8,tensor,float32)", shape);
  CHECK(tensor.scale_shape.empty());
  CHECK(tensor.blocks == 1);
  CHECK(tensor.block(0).contiguous());
  CHECK(tensor.block(0).size() == 60);
  const BlockLayout row = layout_of("group(int8,row,float32)", shape, 0);
  CHECK(row.scale_shape == Shape{3, 5});
  CHECK(row.blocks == 15);
  CHECK(row.block(7).first == 28);
  CHECK(row.block(7).contiguous());
  CHECK(row.block_of(31) == 7);
  for (int axis = 0; axis < 3; ++axis) {
    const BlockLayout channel = layout_of("group(int8,channel,float32)", shape, axis);
    CHECK(channel.scale_shape == Shape{shape[static_cast<std::size_t>(axis)]});
    std::vector<int> seen(60);
    for (std::int64_t c = 0; c < channel.blocks; ++c) {
      const BlockElements elements = channel.block(c);
      std::int64_t last = -1;
      for (std::int64_t k = 0; k < elements.size(); ++k) {
        const std::int64_t i = elements.at(k);
        CHECK(index_of(shape, i)[static_cast<std::size_t>(axis)] == c);
        CHECK(channel.block_of(i) == c);
        CHECK(i > last);
        last = i;
        ++seen[static_cast<std::size_t>(i)];
      }
    }
    CHECK(seen == std::vector<int>(60, 1));
  }
}

TEST_CASE("a block is gathered in the order of its elements", "[fast]") {
  std::vector<float> x(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const char* format :
       {"mx(e2m1,2)", "group(int8,channel,float32)", "group(int8,row,float32)"}) {
    for (int axis = 0; axis < 3; ++axis) {
      const BlockLayout layout = layout_of(format, {3, 5, 4}, axis);
      for (std::int64_t b = 0; b < layout.blocks; ++b) {
        const BlockElements elements = layout.block(b);
        std::vector<float> block(static_cast<std::size_t>(elements.size()));
        elements.gather(x.data(), block.data());
        for (std::int64_t k = 0; k < elements.size(); ++k)
          CHECK(block[k] == static_cast<float>(elements.at(k)));
      }
    }
  }
}

TEST_CASE("empty tensors and scalars", "[fast]") {
  CHECK(layout_of("mxfp4", {0}).blocks == 0);
  CHECK(layout_of("mxfp4", {3, 0}).scale_shape == Shape{3, 0});
  CHECK(layout_of("mxfp4", {0, 40}).scale_shape == Shape{0, 2});
  CHECK(layout_of("group(int8,tensor,float32)", {}).elements() == 1);
  CHECK(layout_of("group(int8,tensor,float32)", {0}).blocks == 1);
  CHECK(layout_of("group(int8,tensor,float32)", {0}).block(0).size() == 0);
  CHECK(layout_of("group(int8,row,float32)", {3, 0}).blocks == 3);
  CHECK(layout_of("group(int8,row,float32)", {3, 0}).block(2).size() == 0);
  CHECK(layout_of("group(int8,row,float32)", {7}).scale_shape.empty());
  CHECK(layout_of("group(int8,channel,float32)", {0, 4}).block(3).size() == 0);
}

TEST_CASE("bits are counted with the tails", "[fast]") {
  const auto bits = [](const char* format, const Shape& shape) {
    return stored_bits(find_block_format(format), layout_of(format, shape));
  };
  CHECK(bits("mxfp4", {2, 64}) == 4.25);
  CHECK(bits("mxfp4", {2, 33}) == 4 + 4 * 8 / 66.0);
  CHECK(bits("nvfp4", {64}) == 4 + (4 * 8 + 32) / 64.0);
  CHECK(bits("group(int4,channel,float32)", {10, 4}) == 4 + 4 * 32 / 40.0);
  CHECK(bits("group(uint4,tensor,float32,zp)", {100}) == 4 + 36 / 100.0);
  CHECK(bits("mxfp4", {0}) == 0);
}

TEST_CASE("impossible shapes and axes are refused", "[fast]") {
  CHECK_THROWS_WITH(layout_of("mxfp4", {}), Contains("scalar") && Contains("mxfp4"));
  CHECK_THROWS_WITH(layout_of("group(int8,row,float32)", {}), Contains("scalar"));
  CHECK_THROWS_WITH(layout_of("mxfp4", {2, 3}, 2), Contains("axis 2 is outside -2..1"));
  CHECK_THROWS_WITH(layout_of("mxfp4", {2, 3}, -3), Contains("axis -3 is outside -2..1"));
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK_THROWS_WITH(layout_of("mxfp4", {huge, huge}), Contains("more than 2^63 - 1 elements"));
  CHECK_THROWS_WITH(layout_of("mxfp4", {huge, huge, 0}), Contains("more than 2^63 - 1 elements"));
  CHECK_THROWS_WITH(layout_of("mxfp4", {-1}), Contains("negative"));
  CHECK_THROWS_WITH(layout_of("group(int8,row,float32)", {huge, 0}), Contains("empty tensor"));
  CHECK_THROWS_WITH(layout_of("group(int8,channel,float32)", {0, huge}), Contains("empty tensor"));
}

}  // namespace block_layout_test
