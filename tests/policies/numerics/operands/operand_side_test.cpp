// Products tile by tile against the whole product.
#include "policies/numerics/operands/operand_side.hpp"

#include "tests/catch.hpp"
#include "tests/policies/numerics/by_hand.hpp"

namespace operand_side_test {

using namespace numemu;
using namespace numemu::policies;
using namespace numemu::policies::test;

namespace {

/// Rows of plain matrices, a few at a time.
class FewRows : public OperandSide {
 public:
  FewRows(const net::Tensor& x, std::int64_t rows, std::int64_t depth, std::int64_t at_once)
      : x_(x), rows_(rows), depth_(depth), at_once_(at_once) {}
  std::int64_t rows_at_once() const override { return at_once_; }
  std::int64_t depth() const override { return depth_; }
  OperandRows rows(std::int64_t b, std::int64_t begin, std::int64_t end) override {
    gather_ = unit::Gather::matrix(end - begin, depth_);
    return {{&find_format("float32"), x_.data.data() + (b * rows_ + begin) * depth_, &gather_},
            nullptr};
  }

 private:
  const net::Tensor& x_;
  std::int64_t rows_, depth_, at_once_;
  unit::Gather gather_;
};

}  // namespace

TEST_CASE("tiles of rows and columns cover every matrix", "[fast]") {
  // [outer 2, m, inner 3, n]; operands lie matrix after matrix here.
  const net::Tensor a = noise({6, 7, 11}, 1), b = noise({6, 5, 11}, 2);
  net::Tensor d({2, 7, 3, 5});
  net::Product p;
  p.m = 7;
  p.n = 5;
  p.k = 11;
  const unit::Gather g;
  p.a = {&a, &g, net::Role::activation, {.outer = 6, .width = 11}};
  p.b = {&b, &g, net::Role::activation, {.outer = 6, .width = 11}};
  p.d = d.data.data();
  p.d_stack = {.outer = 2, .inner = 3, .width = 5};
  const unit::Unit& unit = unit::find_unit("f32.sequential");
  for (const std::int64_t high : {1, 3, 7}) {
    for (const std::int64_t wide : {2, 5}) {
      std::fill(d.data.begin(), d.data.end(), 0.0f);
      FewRows left(a, 7, 11, high), right(b, 5, 11, wide);
      multiply_tiles(unit, p, left, right, {}, {});
      for (std::int64_t i = 0; i < 6; ++i) {
        const auto matrix = [&](const net::Tensor& x, std::int64_t rows) {
          const auto begin = x.data.begin() + i * rows * 11;
          return std::vector<float>(begin, begin + rows * 11);
        };
        CHECK(differences(result_of(p, i), product_of(unit, p, matrix(a, 7), matrix(b, 5))) == 0);
      }
    }
  }
}

}  // namespace operand_side_test
