// Numbers of a run there and back, every bit of them, and JSON that is not one.
#include <bit>
#include <cstring>
#include <limits>

#include "emu/net/train/run_state.hpp"
#include "formats/error.hpp"
#include "formats/storage/json.hpp"
#include "tests/catch.hpp"

namespace numemu::net::run_numbers_test {
namespace {

// Another number in every field, by filling the bytes of what is made of 8-byte numbers alone.
template <class Numbers>
Numbers numbered(std::uint64_t first) {
  Numbers numbers;
  for (std::size_t i = 0; i < sizeof numbers / 8; ++i) {
    const std::uint64_t word = 0x3ff0000000000000u + first + i;
    std::memcpy(reinterpret_cast<char*>(&numbers) + 8 * i, &word, 8);
  }
  return numbers;
}

TEST_CASE("every field comes back bit for bit", "[fast]") {
  RunState state;
  state.step = 12;
  state.epoch = 3;
  state.finished = true;
  state.best.epoch = 1;
  state.best.loss = 0.1;
  state.sums = numbered<EpochSums>(1);
  state.history = {numbered<EpochMetrics>(100), numbered<EpochMetrics>(200)};
  state.history[1].validation_loss = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> scalars{0.9, -0.0, std::numeric_limits<double>::infinity()};
  // Through text, as in a file.
  const Json json = Json::parse(numbers_json(state, scalars).dump());
  std::vector<double> again(3);
  const RunState got = read_numbers(json, "file", again);
  CHECK(got.step == state.step);
  CHECK(got.epoch == state.epoch);
  CHECK(got.finished);
  CHECK(got.best.epoch == 1);
  CHECK(got.best.loss == 0.1);
  CHECK(std::memcmp(&got.sums, &state.sums, sizeof got.sums) == 0);
  REQUIRE(got.history.size() == 2);
  CHECK(std::memcmp(got.history.data(), state.history.data(), 2 * sizeof(EpochMetrics)) == 0);
  CHECK(std::memcmp(again.data(), scalars.data(), 3 * sizeof(double)) == 0);
}

TEST_CASE("JSON of another form is refused by its key", "[fast]") {
  const std::vector<double> scalars{1};
  std::vector<double> out(1);
  const auto refuses = [&](auto change, const char* text) {
    Json json = numbers_json({}, scalars);
    change(json);
    CHECK_THROWS_WITH(read_numbers(json, "file", out), Catch::Contains(text));
  };
  CHECK_NOTHROW(read_numbers(numbers_json({}, scalars), "file", out));
  refuses([](Json& j) { j.erase("step"); }, "file: step");
  refuses([](Json& j) { j["step"] = -1; }, "file: step");
  refuses([](Json& j) { j["epoch"] = 1.5; }, "file: epoch");
  refuses([](Json& j) { j["finished"] = 1; }, "file: finished");
  refuses([](Json& j) { j["best_loss"] = 1.0; }, "file: best_loss");
  refuses([](Json& j) { j["best_loss"] = "00000000000000zz"; }, "file: best_loss");
  refuses([](Json& j) { j["sums"] = 1; }, "file: sums");
  refuses([](Json& j) { j["optimizer"] = Json::array(); }, "file: optimizer");
  refuses([](Json& j) { j["history"] = 1; }, "file: history");
  refuses([](Json& j) { j["history"] = {1}; }, "file: history: epoch");
  CHECK_THROWS_AS(read_numbers(Json(), "file", out), Error);
}

}  // namespace
}  // namespace numemu::net::run_numbers_test
