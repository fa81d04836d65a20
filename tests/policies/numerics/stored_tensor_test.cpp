// Tensors rewritten in place, and packed away.
#include "policies/numerics/stored_tensor.hpp"

#include <cmath>
#include <limits>

#include "policies/numerics/quantized_tensor.hpp"
#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace stored_tensor_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("what is packed comes back as what would have been rewritten", "[fast]") {
  const net::Tensor x = noise({3, 5, 21}, 1);
  struct Case {
    RolePolicy policy;
    std::size_t bytes;
  };
  const std::size_t n = x.data.size();  // 315
  const std::vector<Case> cases = {
      {element_policy("int4"), 4 + 158},
      {element_policy("float6_e3m2fn", Granularity::row), 15 * 4 + 237},
      {element_policy("float16", Granularity::channel, "sr(8)"), 3 * 4 + 2 * n},
      // Blocks run along a sample of 105 elements.
      {block_policy("mxfp4"), 4 + 12 + 158},
      {block_policy("mxfp8_e4m3", BlockAxis::channel, "sr(4)"), 4 + 12 + n},
      {block_policy("nvfp4"), 4 + 21 + 158},
      {block_policy("group(int4,8,float16,zp)"), 4 + 42 * 2 + 42 + 158},
      {block_policy("group(int4,8,float16,min)"), 4 + 42 * 2 + 42 * 4 + 158},
      {block_policy("group(uint2,256,float32,min)"), 4 + 3 * 4 + 3 * 4 + 79},
  };
  for (const Case& c : cases) {
    const RoleQuantizer quantizer(c.policy);
    const RandomPiece random{{.seed = 5}, 0};
    net::Tensor y = x;
    FlagCounts flags;
    const net::Shape shape = quantizer.blocks() ? net::Shape{3, 105} : x.shape;
    const FlagCounts expected = fake_quantize(quantizer, shape, y.data.data(), 1, random);
    const std::vector<std::uint8_t> packed = pack(quantizer, x, random, flags);
    CHECK(packed.size() == c.bytes);
    CHECK(flags == expected);
    CHECK(differences(restore_packed(quantizer, x.shape, packed).data, y.data) == 0);
    CHECK(differences(y.data, x.data) > 0);
    std::vector<std::uint8_t> cut = packed;
    cut.pop_back();
    CHECK_THROWS(restore_packed(quantizer, x.shape, cut));
  }
}

TEST_CASE("shares of a tensor are rewritten each under its own scale", "[fast]") {
  net::Tensor x = noise({2, 32}, 1);
  for (std::int64_t i = 32; i < 64; ++i) x.data[i] *= 1024;
  for (const RolePolicy& policy : {element_policy("int4"), block_policy("nvfp4")}) {
    const RoleQuantizer quantizer(policy);
    net::Tensor together = x, apart = x;
    fake_quantize(quantizer, {2, 32}, together.data.data(), 2, {});
    fake_quantize(quantizer, {1, 32}, apart.data.data(), 1, {});
    fake_quantize(quantizer, {1, 32}, apart.data.data() + 32, 1, {});
    CHECK(differences(together.data, apart.data) == 0);
  }
  net::Tensor empty({0, 4});
  FlagCounts flags;
  CHECK(pack(RoleQuantizer(element_policy("int4")), empty, {}, flags).empty());
}

TEST_CASE("signs come back from 2 bits each", "[fast]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  net::Tensor x({2, 4});
  x.data = {3, -0x1p-149f, 0, -0.0f, kInfinity, -kInfinity, nan, -nan};
  const std::vector<std::uint8_t> packed = pack_signs(x);
  CHECK(packed == std::vector<std::uint8_t>{0b00001001, 0b11111001});
  const net::Tensor signs = restore_signs(x.shape, packed);
  CHECK(signs.shape == x.shape);
  CHECK(std::vector(signs.data.begin(), signs.data.begin() + 6) ==
        std::vector<float>{1, -1, 0, 0, 1, -1});
  CHECK((std::isnan(signs.data[6]) && std::isnan(signs.data[7])));
}

}  // namespace stored_tensor_test
