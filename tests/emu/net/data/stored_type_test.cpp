// Stored elements: exact where representable, nearest even otherwise, beyond the range named.
#include "emu/net/data/stored_type.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "tests/catch.hpp"

namespace numemu::net::stored_type_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> there_and_back(StorageType storage, const std::vector<float>& values) {
  std::string bytes;
  REQUIRE(store(stored_type(storage), values, bytes) == -1);
  REQUIRE(bytes.size() == values.size() * stored_type(storage).bytes);
  std::vector<float> out(values.size());
  load(stored_type(storage), bytes, out);
  return out;
}

TEST_CASE("types by name", "[fast]") {
  for (const StorageType storage : {StorageType::f32, StorageType::f16, StorageType::bf16}) {
    const StoredType& type = stored_type(storage);
    CHECK(type.type == storage);
    CHECK(stored_type(type.name) == &type);
  }
  CHECK(stored_type("I64") == nullptr);
}

TEST_CASE("float16 rounds to nearest even and keeps subnormals, zeros and infinities", "[fast]") {
  const std::vector<float> in = {1.0f,     1.0f + 0x1p-11f, 1.0f + 0x3p-11f, 65504.0f,  65519.0f,
                                 0x1p-24f, 0x1p-25f,        -0.0f,           -kInfinity};
  const std::vector<float> want = {1.0f,     1.0f, 1.0f + 0x1p-9f, 65504.0f,  65504.0f,
                                   0x1p-24f, 0.0f, -0.0f,          -kInfinity};
  const std::vector<float> out = there_and_back(StorageType::f16, in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    CHECK(std::bit_cast<std::uint32_t>(out[i]) == std::bit_cast<std::uint32_t>(want[i]));
  }
  CHECK(std::isnan(there_and_back(StorageType::f16, {NAN})[0]));
}

TEST_CASE("every finite code of float16 and bfloat16 survives", "[fast]") {
  for (const StorageType storage : {StorageType::f16, StorageType::bf16}) {
    std::string codes, again;
    for (int code = 0; code < 65536; ++code) {
      codes += static_cast<char>(code & 255);
      codes += static_cast<char>(code >> 8);
    }
    std::vector<float> values(65536);
    load(stored_type(storage), codes, values);
    CHECK(store(stored_type(storage), values, again) == -1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) REQUIRE(again.substr(2 * i, 2) == codes.substr(2 * i, 2));
    }
  }
}

TEST_CASE("bfloat16 is the upper half of float32", "[fast]") {
  const std::vector<float> out =
      there_and_back(StorageType::bf16, {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 0x1p-133f, -3.0f});
  CHECK(out == std::vector<float>{1.0f, 1.0f + 0x1p-6f, 0x1p-133f, -3.0f});
}

TEST_CASE("float32 keeps every bit, also of a NaN", "[fast]") {
  const float odd_nan = std::bit_cast<float>(0xffc12345u);
  CHECK(std::bit_cast<std::uint32_t>(there_and_back(StorageType::f32, {odd_nan})[0]) ==
        0xffc12345u);
}

TEST_CASE("a finite value that rounds beyond the largest is pointed out", "[fast]") {
  std::string bytes;
  CHECK(store(stored_type(StorageType::f16), std::array{1.0f, kInfinity, -65520.0f}, bytes) == 2);
  CHECK(store(stored_type(StorageType::bf16), std::array{std::numeric_limits<float>::max()},
              bytes) == 0);
}

}  // namespace
}  // namespace numemu::net::stored_type_test
