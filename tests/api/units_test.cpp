// Products in memory: the same bits, refusals and typed results as of the command's files.
#include "api/units.hpp"

#include <algorithm>
#include <cstring>

#include "api/formats.hpp"
#include "formats/error.hpp"
#include "tests/catch.hpp"

namespace units_test {

using namespace numemu;
using Catch::Contains;

namespace {

const std::string kUnit = "nvidia.h100.wgmma.e4m3.f32", kLowered = "nvidia.h100.mma.e4m3.f32";

Codes e4m3(const ArrayShape& shape, const std::vector<std::uint8_t>& codes) {
  return api::codes_of("e4m3fn", api::array_of(ArrayType::uint8, shape, codes));
}

/// 2 x 4 and 4 x 3: rows of 1 2 0 1, and ones.
api::Operands operands() {
  return {.a = e4m3({2, 4}, {0x38, 0x40, 0, 0x38, 0x38, 0x40, 0, 0x38}),
          .b = e4m3({4, 3}, std::vector<std::uint8_t>(12, 0x38))};
}

void check_refused(const std::string& unit, api::Operands operands, const std::string& text) {
  INFO(text);
  try {
    api::make_product(api::open_unit(unit), std::move(operands));
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK_THAT(std::string(error.what()), Contains(text));
  }
}

}  // namespace

TEST_CASE("api units: a product in memory", "[fast]") {
  const auto product = api::gemm(api::open_unit(kUnit), operands());
  CHECK(product->d.shape == ArrayShape{2, 3});
  REQUIRE(product->d.type == ArrayType::float32);
  for (int i = 0; i < 6; ++i) CHECK(product->d.as<float>()[i] == 4);
  CHECK(product->unit->row().grade == unit::Grade::hardware);
  CHECK(product->flags.elements() == 0);

  api::Operands more = operands();
  more.c = api::array_of<float>(ArrayType::float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const auto sums = api::gemm(api::open_unit(kUnit), std::move(more), {.flags = true});
  for (int i = 0; i < 6; ++i) CHECK(sums->d.as<float>()[i] == static_cast<float>(5 + i));
  CHECK(sums->flags.shape == ArrayShape{2, 3});
}

TEST_CASE("api units: operands and results in the caller's memory", "[fast]") {
  const std::vector<std::uint8_t> a{0x38, 0x40, 0, 0x38, 0x38, 0x40, 0, 0x38}, b(12, 0x38);
  std::vector<float> d(6);
  const auto view = [](const ArrayShape& shape, const std::vector<std::uint8_t>& codes) {
    return api::codes_of("e4m3fn", api::view_of(ArrayType::uint8, shape, codes.data()));
  };
  const auto operands = [&](ArrayShape shape) {
    return api::Operands{.a = view({2, 4}, a),
                         .b = view({4, 3}, b),
                         .d = Array::borrowed(ArrayType::float32, std::move(shape), d.data())};
  };
  const auto product = api::gemm(api::open_unit(kUnit), operands({2, 3}));
  CHECK(product->a.array.data.data() == reinterpret_cast<const std::byte*>(a.data()));
  CHECK(product->d.as<float>() == d.data());
  CHECK(d == std::vector<float>(6, 4));
  check_refused(kUnit, operands({3, 2}),
                "d: shape: expected [2, 3] (the shape of D), found [3, 2]");
  api::Operands other = operands({2, 3});
  other.d->type = ArrayType::int32;
  check_refused(kUnit, std::move(other), "d: dtype: expected float32 results, found int32");
  // What has to be changed on the way is copied: signed integers become codes, tf32 loses bits.
  const std::vector<std::int8_t> whole{-1, 2};
  const auto ints =
      api::dot(api::open_unit("nvidia.a100.mma.s8.s32"),
               {.a = api::codes_of("int8", api::view_of(ArrayType::int8, {1, 2}, whole.data())),
                .b = api::codes_of("int8", api::view_of(ArrayType::int8, {1, 2}, whole.data()))});
  CHECK(ints->d.as<std::int32_t>()[0] == 5);
  const std::vector<float> numbers{1.0001F, 2};
  const Array x = api::view_of(ArrayType::float32, {1, 2}, numbers.data());
  CHECK(api::quantize(x, {.block = "mxfp4"}).values.as<float>()[0] == 1);
  CHECK(whole == std::vector<std::int8_t>{-1, 2});
  CHECK(numbers == std::vector<float>{1.0001F, 2});
}

TEST_CASE("api units: a caller's arrays need the alignment of their elements alone", "[fast]") {
  constexpr std::int64_t kSide = 67, kAll = kSide * kSide;
  std::vector<std::uint8_t> codes(kAll + 1);
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::uint8_t>((i * 37 + i / 7) % 0x70);
  const std::vector<std::uint8_t> aligned(codes.begin() + 1, codes.end());
  std::vector<float> d(kAll + 1), expected(kAll);
  const auto multiply = [&](const std::uint8_t* from, float* to) {
    const auto side = [&] {
      return api::codes_of("e4m3fn", api::view_of(ArrayType::uint8, {kSide, kSide}, from));
    };
    api::gemm(
        api::open_unit(kUnit),
        {.a = side(), .b = side(), .d = Array::borrowed(ArrayType::float32, {kSide, kSide}, to)});
  };
  multiply(codes.data() + 1, d.data() + 1);
  multiply(aligned.data(), expected.data());
  CHECK(std::equal(expected.begin(), expected.end(), d.begin() + 1));

  const auto view = [](const float* x) { return api::view_of(ArrayType::float32, {kAll}, x); };
  const auto same = [](const Array& x, const Array& y) {
    return std::equal(x.data.data(), x.data.data() + x.data.size(), y.data.data());
  };
  const api::QuantizeOptions blocks{.block = "mxfp4"};
  CHECK(same(api::quantize(view(d.data() + 1), blocks).codes,
             api::quantize(view(expected.data()), blocks).codes));
  CHECK(same(api::encode(api::codes_of("float32", view(d.data() + 1)), "e5m2").codes.array,
             api::encode(api::codes_of("float32", view(expected.data())), "e5m2").codes.array));
}

TEST_CASE("api units: dots, and float32 operands of tf32", "[fast]") {
  const auto dots = api::dot(api::open_unit(kUnit), {.a = e4m3({2, 2}, {0x38, 0x38, 0x40, 0x40}),
                                                     .b = e4m3({2}, {0x38, 0x40})});
  CHECK(dots->d.shape == ArrayShape{2});
  CHECK(dots->d.as<float>()[0] == 3);
  CHECK(dots->d.as<float>()[1] == 6);
  // Bits below tf32's are dropped, as the unit drops them.
  const auto tf32 = api::gemm(
      api::open_unit("nvidia.a100.mma.tf32.f32"),
      {.a = api::float32({1, 1}, {1 + 0x1p-10f + 0x1p-20f}), .b = api::float32({1, 1}, {1})});
  CHECK(tf32->d.as<float>()[0] == 1 + 0x1p-10f);
}

TEST_CASE("api units: arrays that do not fit are named", "[fast]") {
  check_refused(kUnit,
                {.a = e4m3({2, 4}, std::vector<std::uint8_t>(8)),
                 .b = e4m3({5, 3}, std::vector<std::uint8_t>(15))},
                "a, b: shape: expected M x K and K x N of one K, found [2, 4] and [5, 3]");
  check_refused("nvidia.h100.wgmma.e5m2.f32", operands(),
                "a: float8_e4m3fn contradicts unit nvidia.h100.wgmma.e5m2.f32, which takes "
                "float8_e5m2");
  check_refused("nvidia.b200.tcgen05.e4m3.f32.mx32", operands(), "scale-a: expected scales");
  check_refused(kUnit + ".sp24", operands(), "a: shape: expected M x K");
  api::Operands with_c = operands();
  with_c.c = api::array_of<float>(ArrayType::float32, {2, 2}, {1, 2, 3, 4});
  check_refused(kUnit, std::move(with_c), "c: shape: expected [2, 3] (M x N), found [2, 2]");
  check_refused(kUnit, {}, "a, b: expected codes of a format");
  CHECK_THROWS_AS(api::open_unit("nvidia.h100.wgmma.e4m3.f33"), Error);
}

TEST_CASE("api units: a trace shows what was cut, a comparison which unit is nearer", "[fast]") {
  // 256 + 2^-9 + 2^-8.
  const auto product = api::gemm(api::open_unit(kUnit), {.a = e4m3({1, 3}, {0x78, 0x01, 0x02}),
                                                         .b = e4m3({3, 1}, {0x38, 0x38, 0x38})});
  const api::TracedOutput traced = api::trace(*product, {});
  REQUIRE(traced.trace.steps.size() == 1);
  CHECK(to_double(traced.trace.steps[0].terms[2].product) == 0x1p-8);
  CHECK(to_double(*traced.losses[0].terms[2]) == 0x1p-8);
  CHECK(to_double(*traced.losses[0].off) == -0x1.8p-8);

  const api::Comparison with_unit = api::compare(*product, api::open_unit(kLowered));
  CHECK(with_unit.differ == 1);
  CHECK(with_unit.other_nearer == 1);
  REQUIRE(with_unit.worst.size() == 1);
  CHECK(api::find_divergence(with_unit, with_unit.worst[0]).agreed == 0);

  const Array given = api::array_of<float>(ArrayType::float32, {1, 1}, {256 + 0x1.8p-8f});
  const api::Comparison with_results = api::compare(*product, given);
  CHECK(with_results.most_ulps == 192u);
  CHECK(api::explain(with_results, with_results.worst.at(0)).size() == 4);
  const Array nan = api::array_of<std::uint32_t>(ArrayType::float32, {1, 1}, {0x7fc00000});
  CHECK_FALSE(api::compare(*product, nan).most_ulps.has_value());
}

TEST_CASE("api units: long work tells how far it is, in whole pieces", "[fast]") {
  std::vector<double> told;
  const api::OnProgress tell = [&](std::string_view unit, double done, double total) {
    CHECK(unit == "rows");
    CHECK(total == 300);
    told.push_back(done);
  };
  const auto zeros = [](const ArrayShape& shape) {
    const auto n = static_cast<std::size_t>(shape[0] * shape[1]);
    return api::codes_of("float32",
                         api::array_of(ArrayType::float32, shape, std::vector<float>(n)));
  };
  // 2^24 products of the reference are a moment's work.
  api::gemm(api::open_unit("f32.sequential"), {.a = zeros({300, 600}), .b = zeros({600, 200})},
            {.reference = true, .on_progress = tell});
  REQUIRE(told.size() == 4);
  CHECK(told.front() == 0);
  CHECK(told.back() == 300);
}

TEST_CASE("api units: an axis of 0 costs nothing, however long the others are", "[fast]") {
  const auto empty = [](const ArrayShape& shape) { return e4m3(shape, {}); };
  const api::UnitPtr unit = api::open_unit("h100.wgmma.e4m3.f32");
  constexpr std::int64_t kLong = std::int64_t{1} << 30;
  CHECK(api::gemm(unit, {.a = empty({kLong, 0}), .b = empty({0, 0})})->d.shape ==
        ArrayShape{kLong, 0});
  CHECK(api::gemm(unit, {.a = empty({0, kLong}), .b = empty({kLong, 0})})->d.elements() == 0);
  check_refused("h100.wgmma.e4m3.f32", {.a = empty({std::int64_t{1} << 40, 0}), .b = empty({0, 0})},
                "a: shape: expected at most 2147483647 elements, found [1099511627776, 0]");
  // K = 0: D is C.
  CHECK(api::gemm(unit, {.a = empty({2, 0}), .b = empty({0, 3})})->d.as<float>()[5] == 0);
}

TEST_CASE("api units: patterns find units, and at least one", "[fast]") {
  CHECK(api::find_units().size() == unit::all_units().size());
  CHECK(api::find_units("h100.wgmma").size() > 1);
  CHECK(api::find_units("f32.sequential").size() == 1);
  CHECK_THROWS_AS(api::find_units("nothing.*"), Error);
  // The set of an instruction stands in the source.
  const auto names = [](const std::string& pattern) {
    std::vector<std::string> found;
    for (const unit::Unit* one : api::find_units(pattern)) found.push_back(one->row().name);
    return found;
  };
  CHECK(names("avx2*") == std::vector<std::string>{"intel.emr.vpmaddubsw.u8xs8.s32"});
  CHECK(names("AVX-VNNI*").size() == 4);
  CHECK(names("*avx*").size() == 7);
}

}  // namespace units_test
