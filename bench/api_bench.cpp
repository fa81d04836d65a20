// Calls of api/ on small arrays: what a binding adds to is measured by bench/python_calls.py, which
// makes the same calls.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <vector>

#include "api/formats.hpp"
#include "api/units.hpp"

namespace numemu {
namespace {

std::vector<float> some_numbers(std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>((i * 2654435761 % 4096) - 2048) / 512;
  return x;
}

void encode(benchmark::State& state) {
  const std::vector<float> x = some_numbers(state.range(0));
  std::vector<std::uint8_t> codes(x.size());
  const Format& e4m3 = find_format("e4m3fn");
  for (auto _ : state) {
    const Codes numbers{&find_format("float32"),
                        api::view_of(ArrayType::float32, {state.range(0)}, x.data())};
    Array to = Array::borrowed(ArrayType::uint8, {state.range(0)}, codes.data());
    benchmark::DoNotOptimize(api::encode_into(
        numbers, api::conversion_of(e4m3, {.rounding = "rne", .overflow = "saturate"}), to));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(encode)->Arg(32)->Arg(1 << 24);

void decode(benchmark::State& state) {
  const std::vector<std::uint8_t> codes(static_cast<std::size_t>(state.range(0)), 0x3a);
  std::vector<float> y(codes.size());
  const Format& e4m3 = find_format("e4m3fn");
  for (auto _ : state) {
    const Codes from{&e4m3, api::view_of(ArrayType::uint8, {state.range(0)}, codes.data())};
    Array to = Array::borrowed(ArrayType::float32, {state.range(0)}, y.data());
    api::decode_into(from, to);
    benchmark::DoNotOptimize(y.data());
  }
}
BENCHMARK(decode)->Arg(32);

/// Dots of 32 products, so many in a call: microseconds of a call, dots a second.
void dots(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  constexpr std::int64_t kK = 32;
  std::vector<std::uint8_t> a, b;
  for (std::int64_t i = 0; i < n * kK; ++i) {
    a.push_back(static_cast<std::uint8_t>(i * 2654435761 >> 7 & 0x77));
    b.push_back(static_cast<std::uint8_t>(i * 40503 >> 5 & 0xf7));
  }
  const api::UnitPtr unit = api::open_unit("nvidia.h100.wgmma.e4m3.f32");
  const Format& e4m3 = find_format("e4m3fn");
  std::vector<float> d(a.size() / kK);
  const auto operands = [&] {
    return api::Operands{.a = {&e4m3, api::view_of(ArrayType::uint8, {n, kK}, a.data())},
                         .b = {&e4m3, api::view_of(ArrayType::uint8, {n, kK}, b.data())},
                         .d = Array::borrowed(ArrayType::float32, {n}, d.data())};
  };
  api::dot(unit, operands(), {.reference = true});
  const std::vector<float> expected = d;
  api::dot(unit, operands());
  if (std::memcmp(d.data(), expected.data(), d.size() * sizeof(float)) != 0)
    return state.SkipWithError("differs from the reference");
  for (auto _ : state) benchmark::DoNotOptimize(api::dot(unit, operands()));
  state.SetItemsProcessed(state.iterations() * n);
}
BENCHMARK(dots)->Arg(1)->Arg(8)->Arg(1024);

}  // namespace
}  // namespace numemu

BENCHMARK_MAIN();
