// Calls of api/ on small arrays: what a binding adds to is measured by bench/python_calls.py, which
// makes the same calls.
#include <benchmark/benchmark.h>

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

void dot(benchmark::State& state) {
  const std::vector<std::uint8_t> codes(32, 0x3a);
  const api::UnitPtr unit = api::open_unit("nvidia.h100.wgmma.e4m3.f32");
  const Format& e4m3 = find_format("e4m3fn");
  float d = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        api::dot(unit, {.a = {&e4m3, api::view_of(ArrayType::uint8, {1, 32}, codes.data())},
                        .b = {&e4m3, api::view_of(ArrayType::uint8, {1, 32}, codes.data())},
                        .d = Array::borrowed(ArrayType::float32, {1}, &d)}));
  }
}
BENCHMARK(dot);

}  // namespace
}  // namespace numemu

BENCHMARK_MAIN();
