// Every code of formats of 9 to 16 bits against its value.
#include "policies/numerics/half_values.hpp"

#include <bit>
#include <vector>

#include "policies/numerics/quantized_tensor.hpp"
#include "tests/catch.hpp"

namespace half_values_test {

using namespace numemu;
using namespace numemu::policies;

TEST_CASE("codes are shifted into place or looked up", "[fast]") {
  for (const char* name : {"float16", "bfloat16", "hfp16_e6m9", "dlfloat16", "e4m5", "e5m6+nosub",
                           "e4m6+fnuz", "binary12p5se", "e5m8+unsigned"}) {
    const Format& format = find_format(name);
    const std::uint32_t count = 1u << format.bits;
    std::vector<std::uint16_t> codes;
    // Pieces without and with specials.
    for (std::uint32_t code = 0; code < count; ++code)
      codes.push_back(static_cast<std::uint16_t>(code));
    std::vector<float> y(codes.size());
    decode_halves(format, codes.data(), static_cast<std::int64_t>(codes.size()), y.data());
    std::int64_t wrong = 0;
    for (std::uint32_t code = 0; code < count; ++code) {
      const auto value = static_cast<float>(to_double(decode(format, code)));
      wrong += std::bit_cast<std::uint32_t>(y[code]) != std::bit_cast<std::uint32_t>(value);
    }
    INFO(name);
    CHECK(wrong == 0);
  }
}

}  // namespace half_values_test
