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

// Another number in every field.
struct Numbering {
  std::uint64_t& next;
  void operator()(const char*, double& x, unsigned = 0) const {
    x = std::bit_cast<double>(0x3ff0000000000000u + next++);
  }
  void operator()(const char*, std::int64_t& x, unsigned = 0) const {
    x = static_cast<std::int64_t>(0x3ff0000000000000u + next++);
  }
  void operator()(const char* name, Member<double>& x, unsigned = 0) const {
    (*this)(name, x.emplace());
  }
  void operator()(const char*, std::vector<WireBits>& wire, unsigned = 0) const {
    wire.resize(2);
    for (WireBits& bits : wire) WireBits::fields(bits, *this);
  }
};

template <class Numbers>
Numbers numbered(std::uint64_t first) {
  Numbers numbers;
  Numbers::fields(numbers, Numbering{first});
  return numbers;
}

// Every field of a struct that has the numbers above, as bits.
struct Listing {
  std::vector<std::uint64_t>& bits;
  void operator()(const char*, const double& x, unsigned = 0) const {
    bits.push_back(std::bit_cast<std::uint64_t>(x));
  }
  void operator()(const char*, const std::int64_t& x, unsigned = 0) const {
    bits.push_back(static_cast<std::uint64_t>(x));
  }
  void operator()(const char* name, const Member<double>& x, unsigned = 0) const {
    (*this)(name, x.value());
  }
  void operator()(const char*, const std::vector<WireBits>& wire, unsigned = 0) const {
    for (const WireBits& each : wire) WireBits::fields(each, *this);
  }
};

template <class Numbers>
std::vector<std::uint64_t> listed(const Numbers& numbers) {
  std::vector<std::uint64_t> bits;
  Numbers::fields(numbers, Listing{bits});
  return bits;
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
  CHECK(listed(got.sums) == listed(state.sums));
  CHECK(listed(got.sums).size() == 13);
  REQUIRE(got.history.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(listed(got.history[i]) == listed(state.history[i]));
  CHECK(std::memcmp(again.data(), scalars.data(), 3 * sizeof(double)) == 0);
}

TEST_CASE("a run of one worker that drops nothing has no field of workers", "[fast]") {
  RunState state;
  state.history.resize(1);
  const std::string text = numbers_json(state, {}).dump();
  CHECK(text.find("wire") == text.npos);
  CHECK(text.find("dropped") == text.npos);
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
