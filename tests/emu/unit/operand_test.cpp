// Operands: containers, ranges, decoding with padding, and refusal of gathers that do not fit.
#include "emu/unit/operand.hpp"

#include <cstring>

#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"
#include "tests/emu/unit/problem.hpp"

namespace operand_test {

using namespace numemu;
using namespace numemu::unit;
using namespace numemu::unit::test;

TEST_CASE("operand: containers follow the width, floats only for the top bits of float32",
          "[fast]") {
  CHECK(container_of(find_format("int4")) == Container::bytes);
  CHECK(container_of(find_format("float16")) == Container::halves);
  CHECK(container_of(find_format("float32")) == Container::floats);
  CHECK(container_of(find_format("tfloat32")) == Container::floats);
  CHECK(container_of(find_format("float64")) == Container::doubles);
  CHECK_FALSE(container_of(find_format("e5m20")).has_value());
}

TEST_CASE("operand: the exponents of a format bound every one of its values", "[fast]") {
  for (const Format* format : named_formats()) {
    if (format->bits > 16) continue;
    const Exponents bound = exponents_of(*format);
    Exponents present;
    for (std::uint64_t code = 0; code <= format->code_mask(); ++code)
      present.include(decode(*format, code));
    INFO(format->name);
    CHECK(bound.low <= present.low);
    CHECK(bound.top >= present.top);
    CHECK(bound.low >= present.low - 1);
    CHECK(bound.top <= present.top + 1);
  }
}

TEST_CASE("operand: which formats are float32 values", "[fast]") {
  for (const char* name :
       {"float32", "tfloat32", "bfloat16", "float16", "float8_e8m0fnu", "int8", "dlfloat16"})
    CHECK(fits_float32(find_format(name)));
  for (const char* name : {"float64", "e9m3", "e11m2"})
    CHECK_FALSE(fits_float32(find_format(name)));
}

TEST_CASE("operand: decoding pads with +0 and reads every container", "[fast]") {
  const Convolution shape{2, 3, 4, 2, 2, 1, 2, 1};
  for (const char* format : {"int4", "float8_e8m0fnu", "float16", "float32", "tfloat32"}) {
    Dice dice(5);
    Gather gather = patches(shape);
    const auto rows = static_cast<std::int64_t>(gather.row.size());
    const auto depth = static_cast<std::int64_t>(gather.depth.size());
    const std::int64_t size = gather.padding.source_size();
    const OperandData data = make_operand(format, size, std::move(gather), Fill::any, dice);
    const Operand operand = data.operand();
    std::vector<float> source(size), padded(data.gather.padding.padded_size());
    for (std::int64_t i = 0; i < size; ++i)
      source[i] = static_cast<float>(to_double(decode(*data.format, code_at(operand, i))));
    pad(data.gather.padding, source.data(), padded.data(), 0.0f);
    const Source<float> decoded = decode_floats(operand, rows, depth);
    INFO(format);
    std::int64_t bad = 0;
    for (std::size_t i = 0; i < padded.size(); ++i) {
      const bool both_nan = padded[i] != padded[i] && decoded.values[i] != decoded.values[i];
      bad += !both_nan && std::memcmp(&padded[i], &decoded.values[i], sizeof(float)) != 0;
    }
    CHECK(bad == 0);
  }
}

TEST_CASE("operand: float32 without padding is read in place", "[fast]") {
  Dice dice(6);
  const OperandData data = make_operand("float32", 12, Gather::matrix(3, 4), Fill::any, dice);
  CHECK(decode_floats(data.operand(), 3, 4).values == data.floats.data());
}

TEST_CASE("operand: scan reports what is present", "[fast]") {
  OperandData data;
  data.format = &find_format("float8_e5m2");
  data.bytes = {0x3c, 0x40, 0xb8, 0x00};  // 1, 2, -0.5, 0
  data.gather = Gather::matrix(1, 4);
  Present present = scan(data.operand(), 1, 4);
  CHECK(present.exponents.low == -1);
  CHECK(present.exponents.top == 2);
  CHECK_FALSE(present.specials);
  data.bytes[3] = 0x7c;
  CHECK(scan(data.operand(), 1, 4).specials);
}

TEST_CASE("operand: gathers that do not fit are refused", "[fast]") {
  Dice dice(7);
  OperandData data = make_operand("int8", 12, Gather::matrix(3, 4), Fill::any, dice);
  CHECK(source_size(data.operand(), 3, 4) == 12);
  CHECK_THROWS_AS(source_size(data.operand(), 4, 3), Error);
  data.gather.row[1] = -1;
  CHECK_THROWS_AS(source_size(data.operand(), 3, 4), Error);

  OperandData padded = make_operand("int8", 32, patches({1, 4, 4, 2, 3, 1, 1, 1}), Fill::any, dice);
  CHECK(source_size(padded.operand(), 16, 18) == 32);
  padded.gather.row.back() += 1000;
  CHECK_THROWS_AS(source_size(padded.operand(), 16, 18), Error);
  padded.gather.row.back() -= 1000;
  padded.gather.padding.padded_height = 3;
  CHECK_THROWS_AS(source_size(padded.operand(), 16, 18), Error);
}

}  // namespace operand_test
