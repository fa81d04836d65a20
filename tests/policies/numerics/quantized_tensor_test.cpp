// Codes and scales of a tensor: groups, pieces, values.
#include "policies/numerics/quantized_tensor.hpp"

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace quantized_tensor_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

TEST_CASE("each group of a tensor is quantized under its own scale", "[fast]") {
  net::Tensor x = noise({6, 50, 40}, 1);
  for (std::int64_t i = 0; i < x.size(); ++i) x.data[i] *= static_cast<float>(1 + i / 2000);
  struct Case {
    Granularity granularity;
    std::int64_t groups;
  };
  for (const char* format : {"int4", "float8_e4m3fn", "float16"}) {
    for (const Case c : {Case{Granularity::tensor, 1}, Case{Granularity::channel, 6},
                         Case{Granularity::row, 300}}) {
      RolePolicy policy = element_policy(format, c.granularity, "sr(4)");
      const std::vector<float> scales = choose_scales(policy, x);
      REQUIRE(static_cast<std::int64_t>(scales.size()) == c.groups);
      const RandomSource random{.seed = 3};
      QuantizedTensor q;
      quantize_tensor(policy, x, scales, random, 7, q);
      std::vector<float> y(x.data.size());
      q.values(y.data());
      const Conversion how = conversion_of(policy, random);
      FlagCounts flags;
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < x.size(); ++i) {
        const float scale = scales[i / (x.size() / c.groups)];
        const Encoded code =
            encode_element(how, exact_quotient(value_of(x.data[i]), value_of(scale)), i + 7);
        const float element = static_cast<float>(to_double(decode(*policy.format, code.code)));
        wrong += q.element(i) != element || y[i] != element * scale;
        flags.add(code.flags);
      }
      CHECK(wrong == 0);
      CHECK(q.flags.elements == x.size());
      CHECK(q.flags.overflow == flags.overflow);
      CHECK(q.flags.underflow == flags.underflow);
    }
  }
}

TEST_CASE("value tables hold every code", "[fast]") {
  for (const char* name : {"float8_e5m2", "bfloat16"}) {
    const Format& format = find_format(name);
    const float* table = value_table(format);
    CHECK(table == value_table(format));
    for (std::uint64_t code = 0; code < (std::uint64_t{1} << format.bits); code += 3) {
      const double value = to_double(decode(format, code));
      CHECK((table[code] == value || (table[code] != table[code] && value != value)));
    }
  }
}

}  // namespace quantized_tensor_test
