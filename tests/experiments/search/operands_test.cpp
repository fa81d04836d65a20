// Operands: samples in whole lines, scales of a run, gains against closed forms, gains on disk.
#include "experiments/search/operands.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "experiments/predict/tensor_noise.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/storage/json_reader.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/small_network.hpp"
#include "tests/files.hpp"

namespace search_operands_test {

using namespace numemu;
using namespace numemu::experiments;
using numemu::test::TemporaryFolder;

namespace {

Workbench click_bench(const TemporaryFolder& folder) {
  testing::write_click_network(folder / "n.safetensors");
  net::Dataset data = net::load_dataset("clicks", folder / "cache");
  TrainedNet trained = load_trained_net(folder / "n.safetensors", data, {"", folder / "cache"});
  return {std::move(data), std::move(trained), 20};
}

}  // namespace

TEST_CASE("a sample has whole lines, evenly spread, and a scale for each element", "[fast]") {
  net::Tensor x({10, 6});
  for (std::int64_t i = 0; i < 60; ++i) x.data[i] = static_cast<float>(i);
  SearchOperand operand{.gemm = {.name = "fc"}, .tensor = &x};
  take_sample(operand, 33);
  CHECK(operand.lines == std::vector<std::int64_t>{0, 2, 4, 6, 8});
  CHECK(operand.sample.size() == 30);
  CHECK(operand.sample[6] == 12);
  // A last run of a line that is short has a scale of its own.
  CHECK(expanded({{1, 2, 3, 4}, 4}, 6, 12) ==
        std::vector<double>{1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4});

  policies::RolePolicy policy;
  policy.format = &find_format("int4");
  policy.scale = "absmax";
  policy.granularity = policies::Granularity::channel;
  const SampleScales channels = sample_scales(policy, operand, {}, {});
  REQUIRE(channels.scales.size() == 5);
  for (std::size_t i = 0; i < 5; ++i)
    CHECK(channels.scales[i] == Approx((12.0 * i + 5) / 7).epsilon(1e-6));
  policy.granularity = policies::Granularity::block;
  policy.block = &find_block_format("group(int4,4,float32)");
  const SampleScales blocks = sample_scales(policy, operand, {}, {});
  CHECK(blocks.scales.size() == 10);
  CHECK(blocks.scales[2] == Approx(15.0 / 7).epsilon(1e-6));
}

TEST_CASE("gains of the last layer are closed forms, and gains are kept", "[fast]") {
  const TemporaryFolder folder;
  const Workbench bench = click_bench(folder);
  const std::vector<SearchOperand> operands = search_operands(bench.trained.graph, bench.reference);
  const std::vector<double> gains = output_gains(operands, bench, folder / "cache");
  REQUIRE(gains.size() == operands.size());
  for (const double gain : gains) CHECK(gain > 0);

  const SearchOperand &left = operands[operands.size() - 2], &right = operands.back();
  REQUIRE(right.weight());
  REQUIRE(left.gemm.name == right.gemm.name);
  const double signal = mean_square(bench.reference.logits);
  const auto depth = static_cast<double>(right.width());
  // y = W x: noise of W meets every x, noise of x every w. Few numbers are zero. The estimates are
  // means of at least 4 x 2 squares of nearly normal numbers: within a factor of 3.
  const double of_weight = depth * mean_square(*left.tensor) / signal,
               of_input = depth * mean_square(*right.tensor) / signal;
  CHECK(gains.back() > of_weight / 3);
  CHECK(gains.back() < of_weight * 3);
  CHECK(gains[gains.size() - 2] > of_input / 3);
  CHECK(gains[gains.size() - 2] < of_input * 3);

  std::string path;
  for (const auto& file : std::filesystem::directory_iterator(folder / "cache/gains"))
    path = file.path();
  REQUIRE(!path.empty());
  Json json = parse_json(read_text(path), path);
  CHECK(json["gains"].get<std::vector<double>>() == gains);
  CHECK(output_gains(operands, bench, folder / "cache") == gains);
  json["gains"][0] = 5;  // the digest is another one
  std::ofstream(path) << json.dump();
  CHECK(output_gains(operands, bench, folder / "cache") == gains);
  CHECK(output_gains(operands, bench, "") == gains);
}

}  // namespace search_operands_test
