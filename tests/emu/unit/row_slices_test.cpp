// Slices of A: which products are cut, where, and that results are the same bits.
#include "emu/unit/row_slices.hpp"

#include <cstring>

#include "emu/unit/fast_paths.hpp"
#include "formats/random.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace numemu::unit::row_slices_test {
namespace {

Operand operand(const char* format, const Gather& gather, const void* codes = nullptr) {
  return {&find_format(format), codes, &gather};
}

/// The patches of 3 x 3 pixels of images with a border of one pixel.
Gather windows(std::int64_t images, std::int64_t side, std::int64_t channels) {
  return test::patches({.images = images, .height = side, .width = side, .channels = channels});
}

/// Whether the slices are all rows, one behind the other.
bool covers(const std::vector<RowSlice>& slices, std::int64_t rows) {
  std::int64_t next = 0;
  for (const RowSlice& slice : slices) {
    if (slice.begin != next || slice.end <= slice.begin) return false;
    if (std::ssize(slice.gather.row) != slice.end - slice.begin) return false;
    next = slice.end;
  }
  return next == rows;
}

TEST_CASE("operands that decode to little, or are read in place, are not cut", "[fast]") {
  const Gather small = Gather::matrix(1023, 2048), large = Gather::matrix(1024, 2048);
  CHECK(slice_rows(operand("int8", small), 1023).empty());
  CHECK(slice_rows(operand("float32", large), 1024).empty());
  const std::vector<RowSlice> slices = slice_rows(operand("int8", large), 1024);
  REQUIRE(slices.size() == 2);
  CHECK(covers(slices, 1024));
  CHECK(slices[1].first == kSliceElements);
  CHECK(slices[1].gather.row[1] == 2048);
}

TEST_CASE("rows that do not follow the source are not cut", "[fast]") {
  Gather mixed = Gather::matrix(1024, 2048);
  std::swap(mixed.row[600], mixed.row[2]);
  CHECK(slice_rows(operand("int8", mixed), 1024).empty());
  CHECK(slice_rows(operand("int8", Gather::matrix(2048, 1024, true)), 2048).empty());
}

TEST_CASE("padded images are cut between images", "[fast]") {
  const Gather four = windows(4, 60, 150);  // 576,600 elements each with the border
  const std::vector<RowSlice> slices = slice_rows(operand("float32", four), 4 * 3600);
  REQUIRE(slices.size() == 4);
  CHECK(covers(slices, 4 * 3600));
  CHECK(slices[3].first == 3 * 3600 * 150);
  CHECK(slices[3].gather.padding.outer == 1);
  CHECK(slices[3].gather.row == slices[0].gather.row);
  CHECK(slice_rows(operand("int8", windows(1, 120, 150)), 14400).empty());
}

TEST_CASE("products in slices have the bits of the rows alone", "[fast]") {
  struct Case {
    const char *unit, *format;
  };
  for (const Case& c :
       {Case{"neutral.f32.sequential", "int8"}, Case{"nvidia.h100.wgmma.e4m3.f32", "float8_e4m3fn"},
        Case{"neutral.f32.sequential", "float32"}}) {
    INFO(c.unit << " " << c.format);
    const Unit& unit = find_unit(c.unit);
    const bool wide = std::string(c.format) == "float32";
    const Gather gather = windows(5, 58, 128);
    const std::int64_t rows = 5 * 58 * 58, k = 9 * 128, n = 2;
    const std::int64_t size = gather.padding.source_size();
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(size));
    std::vector<float> floats(static_cast<std::size_t>(size));
    const RandomSource source_of_bits{7, Stream::vectors, 1, 0};
    for (std::int64_t i = 0; i < size; ++i) {
      const std::uint64_t drawn = source_of_bits.bits(static_cast<std::uint64_t>(i), 16);
      codes[i] = static_cast<std::uint8_t>(drawn % 120);  // no NaN of E4M3
      floats[i] = static_cast<float>(drawn % 1000) / 64;
    }
    codes[2 * size / 5 + 7] = 0x7f;  // NaN in the third image
    std::vector<std::uint8_t> right(static_cast<std::size_t>(n * k));
    for (std::int64_t i = 0; i < n * k; ++i) right[i] = static_cast<std::uint8_t>(i * 7 % 120);
    const Gather columns = Gather::matrix(n, k);
    const void* const source = wide ? static_cast<const void*>(floats.data()) : codes.data();
    std::vector<float> d(static_cast<std::size_t>(rows * n));
    Gemm g{.m = rows,
           .n = n,
           .k = k,
           .a = operand(c.format, gather, source),
           .b = operand(wide ? "int8" : c.format, columns, right.data()),
           .d = d.data()};
    REQUIRE(slice_rows(g.a, rows).size() > 1);
    unit.multiply(g);
    for (const std::int64_t r :
         {std::int64_t{0}, rows / 5 - 1, rows / 5, 2 * rows / 5 + 60, rows - 1}) {
      Gather one = gather;
      one.row = {gather.row[static_cast<std::size_t>(r)]};
      std::vector<float> alone(static_cast<std::size_t>(n));
      Gemm line = g;
      line.m = 1;
      line.a.gather = &one;
      line.d = alone.data();
      unit.multiply_reference(line);
      CHECK(std::memcmp(alone.data(), d.data() + r * n, sizeof(float) * n) == 0);
    }
  }
}

}  // namespace
}  // namespace numemu::unit::row_slices_test
