// Rows paired by their answers: who is best, by how much, and who is not told apart.
#include "experiments/report/pairs.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "emu/net/build/builder.hpp"
#include "emu/net/nets.hpp"
#include "experiments/engine/losses_file.hpp"
#include "experiments/engine/sweep.hpp"
#include "formats/random.hpp"
#include "formats/storage/npy.hpp"
#include "tests/catch.hpp"
#include "tests/experiments/report/sample.hpp"
#include "tests/experiments/rows.hpp"
#include "tests/files.hpp"

namespace pairs_test {

using namespace numemu;
using namespace numemu::experiments;
using Catch::Contains;
using Catch::EndsWith;
using Catch::StartsWith;

namespace {

/// Of 2,000 samples the first `wrong` are wrong, and the last `other`.
Json row(std::size_t at, std::size_t format, std::size_t wrong, std::size_t other, double sqnr,
         const char* unit = "exact") {
  Json out = sample::row(at, &sample::kFormats[format], &sample::kFormats[format], unit);
  std::vector<std::uint8_t> right(2000, 1);
  for (std::size_t i = 0; i < wrong; ++i) right[i] = 0;
  for (std::size_t i = 0; i < other; ++i) right[1999 - i] = 0;
  const double top1 = 1 - static_cast<double>(wrong + other) / 2000;
  const RowAnswers answers = row_answers(right);
  out["answers"] = {{"n", answers.n}, {"right", answers.right}};
  out["metrics"]["top1"] = top1;
  out["metrics"]["baseline_top1"] = 0.95;
  out["metrics"]["difference"] = top1 - 0.95;
  out["metrics"]["difference_ci95"] = {top1 - 0.951, top1 - 0.949};
  out["metrics"]["sqnr_db"] = sqnr;
  return out;
}

/// The same of a seed: its first `wrong` + `seed` samples are wrong.
Json seeded(std::size_t at, std::size_t format, std::size_t wrong, std::size_t seed) {
  Json out = row(at, format, wrong + seed, 0, 28);
  out["point"].erase("seed");
  out["point"]["recipe"]["seed"] = seed;
  return out;
}

/// Of 512 windows, whose bits are `mean` above a level that all formats share, with noise of their
/// own.
Json losses_row(const std::string& folder, std::size_t at, std::size_t format, double mean,
                std::uint64_t seed = 0, double drift = 0) {
  Json out = sample::text_rows().front();
  out["point"] =
      sample::row(at, &sample::kFormats[format], &sample::kFormats[format], "exact")["point"];
  out["point"].erase("seed");
  out["point"]["recipe"]["seed"] = seed;
  out["key"] = std::string(62, '0') + static_cast<char>('a' + at) + static_cast<char>('0' + seed);
  const RandomSource random{.seed = 10 * at + seed, .stream = Stream::probe};
  JudgedSums sums{&net::find_score("bits_per_token"), {2, {}}};
  double bits = 0;
  for (std::uint64_t i = 0; i < 512; ++i) {
    const double noise = static_cast<double>(random.bits(i, 16)) / 65536 - 0.5;
    const double own = 2 + std::sin(static_cast<double>(i)) + mean + drift + 0.1 * noise;
    sums.table.sums.insert(sums.table.sums.end(), {own * std::log(2.0) * 64, 64});
    bits += own / 512;
  }
  out["metrics"]["bits_per_character"] = bits;
  out["metrics"]["baseline_bits_per_character"] = 2.0;
  Row row = read_row(out);
  row.losses = write_losses(folder, row.key, sums);
  return to_json(row);
}

std::string said(const std::vector<Json>& rows, const std::string& folder = "") {
  const std::vector<ReportRow> records = report_rows_of(rows, folder);
  const std::vector<std::string> all = best_of_widths(configurations(records));
  return all.empty() ? "" : all.front();
}

/// What a report says of a sweep over formats of 6 bits, whose rows are judged by `score`.
std::string swept(const std::string& data, net::Builder& builder, const char* score) {
  const test::TemporaryFolder folder;
  TrainedNet trained{builder.take(), "", "0123456789abcdef"};
  net::initialize(trained.graph, 3);
  Workbench bench(net::load_dataset(data, folder.path()), std::move(trained), 1000);
  const SweepConfig config = parse_sweep(R"({"numemu_sweep": 1, "net": "mlp", "data": "small",
      "base": {"numemu_recipe": 1, "roles": {"weight": {"format": "int6"}, "activation": {"format": "int6"}}},
      "grid": {"roles.weight.format": ["int6", "float6_e3m2fn", "float6_e2m3fn"]},
      "tie": [["roles.weight.format", "roles.activation.format"]]})",
                                         "s.json");
  RowStore store =
      open_rows(config, bench.dataset, bench.trained, folder.path(), {}, Existing::resume);
  run_sweep(config, bench, store, folder.path(), {}, {});
  const std::vector<Json> rows = merged_rows(folder.path());
  CHECK(rows.size() == 3);
  for (const Json& row : rows)
    CHECK(read_losses(folder.path(), read_row(row)).score->name == score);
  return said(rows, folder.path());
}

}  // namespace

TEST_CASE("pairs: the best of a width, and what is not told apart from it", "[fast]") {
  std::vector<Json> rows = {row(0, 1, 100, 0, 28), row(1, 2, 140, 0, 26), row(2, 12, 100, 2, 27)};
  std::vector<ReportRow> records = report_rows_of(rows);
  std::vector<std::string> said = best_of_widths(configurations(records));
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], StartsWith("Highest top-1 at 6 bits: e2m3") &&
                          Contains(", told apart from 1 of 2 others, by 2.0 [1.") &&
                          Contains("points over e3m2") && Contains("int6") &&
                          Contains("is not told apart from it"));
  CHECK_THAT(said[0], EndsWith("; int6 is not told apart from it."));
  // One is named, however many are like it.
  std::vector<Json> more = rows;
  more.push_back(row(3, 1, 100, 3, 25, "narrow"));
  records = report_rows_of(more);
  said = best_of_widths(configurations(records));
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], StartsWith("Highest top-1 at 6 bits: e2m3fn") &&
                          Contains(", told apart from 1 of 3 others, by ") &&
                          Contains("; 2 others are not told apart from it: ") && Contains("int6"));
  // Told apart from all: nothing to add.
  const std::vector<Json> two = {rows[0], rows[1]};
  records = report_rows_of(two);
  CHECK_THAT(best_of_widths(configurations(records)).at(0),
             Contains(", by 2.0 [1.") && !Contains("told apart"));
  records = report_rows_of(rows);
  rows[1].erase("answers");  // as of an earlier program
  records = report_rows_of(rows);
  CHECK_THAT(best_of_widths(configurations(records)).at(0),
             Contains("not paired") && Contains("e3m2"));
  for (Json& old : rows) old.erase("answers");
  records = report_rows_of(rows);
  CHECK(best_of_widths(configurations(records)).empty());
}

TEST_CASE("pairs: best points are not chosen by noise", "[fast]") {
  // The narrow accumulator is ahead by one sample.
  std::vector<Json> rows = {row(0, 1, 101, 0, 28.4, "exact"), row(1, 1, 100, 0, 25, "narrow"),
                            row(2, 14, 99, 0, 40, "exact")};
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::vector<Configuration> all = configurations(records);
  const BestPoints best = best_points(all);
  REQUIRE(best.points.size() == 1);
  CHECK(best.points[0]->rows[0]->position == 0);
}

TEST_CASE("pairs: losses tell configurations apart as answers do", "[fast]") {
  const test::TemporaryFolder folder;
  std::vector<Json> rows = {losses_row(folder.path(), 0, 1, 0.05),
                            losses_row(folder.path(), 1, 2, 0.10),
                            losses_row(folder.path(), 2, 12, 0.0502)};
  CHECK_THAT(said(rows, folder.path()),
             StartsWith("Lowest bits per ") && Contains(" at 6 bits: ") &&
                 Contains(", by 0.051 [0.046, 0.055] bits per ") && Contains(" over e3m2") &&
                 Contains(" is not told apart from it"));
  // The mean of a window's noise is 0.1 / sqrt(12), of a difference sqrt(2) more: 0.0018 of 512.
  const std::vector<ReportRow> records = report_rows_of(rows, folder.path());
  const std::vector<Configuration> all = configurations(records);
  const std::optional<PairedLead> lead = paired(all[0], all[1]).lead;
  REQUIRE(lead);
  CHECK(lead->difference == Approx(0.05).margin(0.006));
  CHECK(lead->high - lead->low == Approx(2 * 2.0 * 0.0018).epsilon(0.4));

  std::filesystem::remove(folder / rows[1]["losses"]["file"].text());
  CHECK_THAT(said(rows, folder.path()),
             Contains("; not paired: e3m2") && Contains(rows[1]["losses"]["file"].text()));
  rows[1].erase("losses");
  CHECK_THAT(said(rows, folder.path()), Contains("(rows without answers and losses)"));
}

TEST_CASE("pairs: several seeds are paired seed by seed", "[fast]") {
  std::vector<Json> rows;
  for (const std::size_t seed : {0, 1, 2, 3, 4}) {
    rows.push_back(seeded(rows.size(), 1, 100, seed));
    rows.push_back(seeded(rows.size(), 2, 140, seed));
    rows.push_back(seeded(rows.size(), 12, 100 + (seed % 2), seed));
  }
  CHECK_THAT(said(rows), Contains("Highest top-1 at 6 bits: e2m3fn, told apart from 1 of 2 "
                                  "others, by 2.0 [1.") &&
                             Contains("points over e3m2fn; int6 is not told apart from it"));
  const std::vector<ReportRow> records = report_rows_of(rows);
  const std::vector<Configuration> all = configurations(records);
  // Under every seed the same samples differ: they are no more than those of one seed.
  const PairedLead five = *paired(all[0], all[1]).lead;
  const std::vector<Json> both = {rows[0], rows[1]};
  const std::vector<ReportRow> first = report_rows_of(both);
  const std::vector<Configuration> one = configurations(first);
  const PairedLead single = *paired(one[0], one[1]).lead;
  CHECK(five.difference == Approx(single.difference));
  CHECK(five.low == Approx(single.low));
  CHECK(five.high == Approx(single.high));
  rows.erase(rows.begin() + 4);  // e3m2 under seed 1
  CHECK_THAT(said(rows), Contains("; not paired: e3m2fn (measured with other seeds)"));
}

TEST_CASE("pairs: what seeds change counts beside what samples do", "[fast]") {
  const test::TemporaryFolder folder;
  std::vector<Json> rows;
  const double drift[] = {-0.04, -0.02, 0, 0.02, 0.04};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    rows.push_back(losses_row(folder.path(), 0, 1, 0.05, seed, drift[seed]));
    rows.push_back(losses_row(folder.path(), 1, 2, 0.07, seed));
  }
  const std::vector<ReportRow> records = report_rows_of(rows, folder.path());
  const std::vector<Configuration> all = configurations(records);
  const PairedLead lead = *paired(all[0], all[1]).lead;
  CHECK_FALSE(lead.told_apart());
  // Student's 2.776 times 0.0316 / sqrt(5), and little from 512 windows.
  CHECK(lead.high - lead.difference == Approx(0.0393).epsilon(0.1));
}

TEST_CASE("pairs: a sweep over tokens", "[fast]") {
  const test::TemporaryFolder folder;
  std::vector<std::uint16_t> tokens = {0};
  const RandomSource random{.seed = 1};
  for (std::uint64_t i = 1; i < 8000; ++i) {
    const std::uint32_t step = 3 + random.bits(i, 2);
    tokens.push_back(static_cast<std::uint16_t>((7 * tokens.back() + step) % 20));
  }
  const std::string file = folder / "t.bin";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()), 2 * std::ssize(tokens));
  net::Builder net("lm", {16}, 20);
  net.embedding("embedding", 8).linear("fc1", 16).relu("relu").classifier("fc2");
  CHECK_THAT(swept("tokens:" + file + ",context=16,vocabulary=20", net, "bits_per_token"),
             StartsWith("Lowest bits per token at 6 bits: ") && !Contains("not paired"));
}

TEST_CASE("pairs: a sweep over numbers", "[fast]") {
  const test::TemporaryFolder folder;
  const RandomSource random{.seed = 1};
  for (const auto& [part, samples, draw] : {std::tuple("", 600, 0), {"_test", 100, 1000}}) {
    std::vector<float> x, y;
    for (int i = 0; i < samples; ++i) {
      float sum = 0;
      for (int k = 0; k < 6; ++k) {
        x.push_back(
            static_cast<float>(random.uniform(static_cast<std::uint64_t>(6 * (draw + i) + k))));
        sum += x.back();
      }
      y.push_back(sum);
    }
    write_npy(folder / ("x" + std::string(part) + ".npy"), ArrayType::float32, {samples, 6},
              x.data());
    write_npy(folder / ("y" + std::string(part) + ".npy"), ArrayType::float32, {samples, 1},
              y.data());
  }
  net::Builder net("numbers", {6}, 1);
  net.linear("fc1", 16).relu("relu").linear("fc2", 1);
  CHECK_THAT(swept("npy:" + folder.path(), net, "mse"),
             StartsWith("Lowest mean squared error at 6 bits: ") && !Contains("not paired"));
}

}  // namespace pairs_test
