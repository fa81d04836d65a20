// The plain recurrence against float64 through time, with tanh and rectified.
#include "emu/net/ops/rnn.hpp"

#include <cmath>

#include "tests/catch.hpp"
#include "tests/emu/net/op_check.hpp"

namespace numemu::net {
namespace {

TEST_CASE("rnn and its gradients are those of float64 through time", "[fast]") {
  constexpr std::int64_t kBatch = 2, kTime = 3, kIn = 3, kHidden = 2;
  constexpr double kTolerance =
      3 * 10 * 0x1p-23;  // 3 steps of about 10 roundings of numbers below 4
  constexpr test::Smoothness kSmooth{.third = 48};
  for (const bool rectified : {false, true})
    for (const bool initial : {false, true}) {
      INFO("rectified " << rectified << " initial " << initial);
      Rnn op({.in = kIn, .hidden = kHidden, .initial = initial}, rectified);
      CHECK((op.kind() == "rnn" && op.rectified() == rectified));
      const auto reference = [&](const std::vector<test::Doubles>& a) {
        const test::Doubles* const p = a.data() + (initial ? 2 : 1);
        test::Doubles h(kBatch * kHidden), y;
        if (initial) h = a[1];
        y.resize(kBatch * kTime * kHidden);
        for (std::int64_t t = 0; t < kTime; ++t) {
          const test::Doubles last = h;
          for (std::int64_t n = 0; n < kBatch; ++n)
            for (std::int64_t j = 0; j < kHidden; ++j) {
              double sum = p[2][j];
              for (std::int64_t i = 0; i < kIn; ++i)
                sum += a[0][(n * kTime + t) * kIn + i] * p[0][j * kIn + i];
              for (std::int64_t i = 0; i < kHidden; ++i)
                sum += last[n * kHidden + i] * p[1][j * kHidden + i];
              h[n * kHidden + j] = y[(n * kTime + t) * kHidden + j] =
                  rectified ? std::max(sum, 0.0) : std::tanh(sum);
            }
        }
        return y;
      };
      std::vector<Tensor> inputs{test::random_tensor({kBatch, kTime, kIn}, 1)};
      if (initial) inputs.push_back(test::random_tensor({kBatch, kHidden}, 2));
      test::check_op(op, inputs, reference, kTolerance, rectified ? test::Smoothness{} : kSmooth);
    }
}

}  // namespace
}  // namespace numemu::net
