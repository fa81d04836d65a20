// How an accumulator's bits, chunks and order matter: dot products under laws and the layers of
// networks, predicted and measured.
#include "experiments/accumulator/accumulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "emu/stats/mean.hpp"
#include "emu/unit/unit.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/run_points.hpp"
#include "experiments/engine/study.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/report_row.hpp"
#include "formats/analysis/normal_law.hpp"
#include "formats/containers.hpp"
#include "formats/convert.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "formats/portable/pairwise.hpp"
#include "formats/random.hpp"
#include "formats/suggest.hpp"
#include "policies/notes/notes.hpp"

namespace numemu::experiments {

namespace {

constexpr std::int64_t kQuantiles = 4096;

/// The number of a law at its quantile u; `left`: the first operand.
double number_of(const SumCase& c, bool left, double u) {
  const double z = u < 0.5 ? normal::quantile(u) : -normal::quantile(1 - u);
  if (c.law == "positive") return std::fabs(z);
  if (c.law == "uniform") return 2 * u - 1;
  return c.law == "rectified" && left ? std::max(0.0, z) : z;
}

/// Codes of an operand and their values.
struct Drawn {
  std::vector<std::uint8_t> codes;
  std::vector<float> values;
};

template <class Quantile>
Drawn drawn(const SumCase& c, bool left, std::int64_t n, const Quantile& quantile) {
  const Format &format = find_format(c.format), &float32 = find_format("float32");
  const double scale = format.kind == Kind::integer ? largest_value(format) / 4 : 1;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    x[i] = static_cast<float>(scale * number_of(c, left, quantile(i)));
  Drawn out;
  out.codes.resize(x.size() * static_cast<std::size_t>(container_bytes(format)));
  out.values.resize(x.size());
  convert_codes(Conversion{.format = &format, .overflow = Overflow::saturate}, float32, x.data(), n,
                out.codes.data());
  convert_codes(Conversion{.format = &float32}, format, out.codes.data(), n, out.values.data());
  return out;
}

}  // namespace

const std::vector<std::string>& sum_laws() {
  static const std::vector<std::string> laws = {"normal", "positive", "uniform", "rectified"};
  return laws;
}

void check_sum_law(const std::string& law) {
  if (std::ranges::find(sum_laws(), law) == sum_laws().end())
    throw Error(unknown_name("law", law, {sum_laws().begin(), sum_laws().end()}));
}

unit::SumError predicted_sums(const SumCase& c) {
  constexpr std::int64_t kShuffle = 1597;  // odd: every quantile once
  const auto middle = [](std::int64_t i) {
    return (static_cast<double>(i) + 0.5) / static_cast<double>(kQuantiles);
  };
  const Drawn a = drawn(c, true, kQuantiles, middle),
              b = drawn(c, false, kQuantiles,
                        [&](std::int64_t i) { return middle(i * kShuffle % kQuantiles); });
  const Format& format = find_format(c.format);
  const std::vector<double> x(a.values.begin(), a.values.end()),
      y(b.values.begin(), b.values.end());
  return unit::sum_error(*unit::find_unit(c.unit).description(),
                         unit::independent_products(x, y, &format, &format), c.depth);
}

MeasuredSums measured_sums(const SumCase& c, std::int64_t rows, std::uint64_t seed) {
  const unit::Unit& unit = unit::find_unit(c.unit);
  const Format& format = find_format(c.format);
  unit.require_operand(format);
  const auto lines = [&](bool left) {
    const RandomSource source{
        .seed = seed, .stream = Stream::data, .tensor = left ? 1u : 2u, .draw = 0};
    return drawn(c, left, rows * c.depth,
                 [&](std::int64_t i) { return source.uniform(i) + 0x1p-33; });
  };
  const Drawn a = lines(true), b = lines(false);
  const unit::Gather gather = unit::Gather::matrix(rows, c.depth);
  std::vector<std::uint64_t> d(static_cast<std::size_t>(rows * rows));
  unit.multiply({.m = rows,
                 .n = rows,
                 .k = c.depth,
                 .a = {&format, a.codes.data(), &gather, nullptr},
                 .b = {&format, b.codes.data(), &gather, nullptr},
                 .d = d.data(),
                 .seed = seed});
  const std::vector<double> results = unit::result_values(unit, d.data(), rows * rows);
  MeasuredSums out;
  std::vector<double> by_row;
  double finite = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    double noise = 0, count = 0;
    for (std::int64_t j = 0; j < rows; ++j) {
      const double result = results[i * rows + j];
      if (!std::isfinite(result)) continue;
      const double exact = pairwise_sum(c.depth, [&](std::int64_t k) {
        return double{a.values[i * c.depth + k]} * b.values[j * c.depth + k];
      });
      noise += (result - exact) * (result - exact);
      out.signal += exact * exact;
      out.bias += result - exact;
      count += 1;
    }
    finite += count;
    if (count > 0) by_row.push_back(noise / count);
  }
  out.lost = 1 - finite / static_cast<double>(rows * rows);
  if (by_row.empty()) return out;
  out.signal /= finite;
  out.bias /= finite;
  const stats::Mean mean = stats::mean_of(by_row);
  out.noise = mean.value;
  out.noise_error = mean.error;
  return out;
}

namespace {

/// Decibels within which the error of sums under a law is claimed to be predicted.
constexpr double kLawTolerance = 1;
constexpr std::int64_t kMostRows = 96, kFewestRows = 24;

void check_unit(const std::string& name) { unit::find_unit(name); }
void check_format(const std::string& name) { find_format(name); }

double decibels_of(double signal, double noise) {
  return noise > 0 ? 10 * portable::log10(signal / noise) : HUGE_VAL;
}

std::string cell(double db) { return std::isfinite(db) ? fmt::format("{:.1f}", db) : "exact"; }

void study_laws(const ExperimentRun& run, Conclusion& out) {
  std::vector<SumCase> cases;
  for (const std::string& law : run.settings.list("laws")) {
    for (const std::string& unit : run.settings.list("units")) {
      for (const std::int64_t depth : run.settings.whole_numbers("lengths"))
        cases.push_back({unit, law, run.settings.text("format"), depth});
    }
  }
  const double most = run.settings.number("products");
  const std::vector<MeasuredSums> measured =
      run_cases<MeasuredSums>(run, cases, [&](const SumCase& c) -> TypedTrial<MeasuredSums> {
        const auto affordable =
            static_cast<std::int64_t>(std::sqrt(most / static_cast<double>(c.depth)));
        const std::int64_t rows = std::clamp(affordable, kFewestRows, kMostRows);
        return {{{"unit", c.unit},
                 {"law", c.law},
                 {"format", c.format},
                 {"depth", c.depth},
                 {"rows", rows},
                 {"seed", run.seed}},
                fmt::format("{}, {}, {} products", c.unit, c.law, c.depth),
                [=, seed = run.seed] { return measured_sums(c, rows, seed); }};
      });
  Judged judged;
  std::map<std::string, ResultTable> tables;
  std::map<std::string, Chart> charts;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const SumCase& c = cases[i];
    const MeasuredSums& m = measured[i];
    const unit::SumError predicted = predicted_sums(c);
    const double db = decibels_of(m.signal, m.noise),
                 expected = predicted.none.empty() ? decibels_of(m.signal, predicted.noise) : NAN,
                 error = 10 / portable::log(10.0) * m.noise_error / m.noise;
    ResultTable& table = tables[c.law];
    if (table.header.empty())
      table = {fmt::format("Sums of {} products, {} operands: SNR in dB", c.law, c.format),
               {"unit", "products", "predicted", "measured", "bias / rms predicted",
                "bias / rms measured", "overflow predicted", "infinite", "why no figure"},
               {}};
    const double size = std::sqrt(m.signal);
    table.rows.push_back(
        {c.unit, std::to_string(c.depth), std::isnan(expected) ? "-" : cell(expected), cell(db),
         std::isnan(expected) ? "-" : fmt::format("{:+.4f}", predicted.bias / size),
         fmt::format("{:+.4f}", m.bias / size),
         std::isnan(predicted.overflow) ? "-" : fmt::format("{:.2g}", predicted.overflow),
         fmt::format("{:.2g}", m.lost), predicted.none});
    if (!std::isfinite(expected) || !std::isfinite(db)) continue;
    judged.add(fmt::format("SNR in dB of {}, {} law, {} products", c.unit, c.law, c.depth),
               expected, db, error > 0 ? error : HUGE_VAL, kLawTolerance);
    Chart& chart = charts[c.law];
    chart.title = fmt::format("Error of sums of {} products", c.law);
    chart.caption = fmt::format("Operands in {}. Dashed: by the unit's error model.", c.format);
    chart.x = "products";
    chart.y = "SNR, dB";
    chart.log_x = true;
    const auto depth = static_cast<double>(c.depth);
    chart.add(c.unit, with_error({.x = depth, .y = db}, error), {.x = depth, .y = expected});
  }
  out.add(judged.findings(), "laws");
  for (const std::string& law : run.settings.list("laws")) {
    out.tables.push_back(tables[law]);
    if (charts.contains(law)) out.charts.push_back(charts[law]);
  }
}

/// Points of a network: the accumulators in the order of the setting, then exact sums.
struct NetResult {
  std::vector<std::string> units;
  std::vector<Row> rows;
  std::vector<std::string> notes;
};

NetResult sweep_net(const ExperimentRun& run, const std::string& net) {
  const std::string& data = run.settings.text("data");
  net::Dataset dataset = net::load_dataset(data, run.folders.cache);
  TrainedNet trained = load_with_data(net, dataset, run.folders);
  const Json role = {{"format", run.settings.text("net_format")}};
  BuiltSweep built{
      .experiment = "accumulator",
      .net = net,
      .data = data,
      .images = run.settings.integer("images"),
      .more = {{"seeds", Json::array({run.seed})},
               {"base",
                {{"numemu_recipe", 1}, {"roles", {{"weight", role}, {"activation", role}}}}}},
      .repeated = "--set: net_units: expected different units, found one under two names"};
  NetResult out{run.settings.list("net_units"), {}, {}};
  out.units.emplace_back("exact");
  for (const std::string& unit : out.units)
    built.points.push_back({.settings = {{"gemms.fprop.unit", unit}}});
  PointRun points(run, built, run.out + "/" + trained.graph.name);
  points.open(dataset, trained);
  const Workbench bench =
      open_bench(run, net, std::move(dataset), std::move(trained), built.images);
  out.rows = points.rows(bench);
  out.notes = policies::notes_on_outputs(
      bench.trained.graph, "the accumulators of all its layers are judged by that one");
  return out;
}

void study_nets(const ExperimentRun& run, Conclusion& out) {
  ResultTable smallest{"The first accumulator of the list that keeps each network's accuracy",
                       {"network", "accumulator", "difference to float32, points", "95 % interval",
                        "output SQNR dB predicted", "measured"},
                       {}};
  Judged judged;
  const double most = run.settings.number("most_loss");
  for (const std::string& net : run.settings.list("nets")) {
    if (net == "-") return;
    const NetResult result = sweep_net(run, net);
    std::ranges::copy(result.notes, std::back_inserter(out.sentences));
    const std::vector<ReportRow> records = report_rows(result.rows);
    const Measure& measure = *records.at(0).judged.measure;
    const std::string difference_title =
        measure.factor == 100 ? "difference to float32, points" : "difference to float32";
    smallest.header[2] = difference_title;
    ResultTable table{
        fmt::format("{}, operands in {}: by accumulator", net, run.settings.text("net_format")),
        {"accumulator", "output SQNR dB predicted", "measured", value_title(measure),
         difference_title, "95 % interval", "layers predicted", "within 1 dB", "median distance dB",
         "95th percentile", "largest"},
        {}};
    bool found = false;
    for (std::size_t i = 0; i < records.size(); ++i) {
      const ReportRow& r = records[i];
      std::vector<double> distances;
      for (const RowLayer& layer : r.row->layers) {
        if (!layer.predicted_db || !layer.sqnr_db) continue;
        distances.push_back(std::fabs(*layer.predicted_db - *layer.sqnr_db));
        judged.add(fmt::format("SQNR in dB of {}, {}, {}", net, result.units[i], layer.name),
                   *layer.predicted_db, *layer.sqnr_db,
                   layer.sqnr_ci95
                       ? (layer.sqnr_ci95->high.value_or(HUGE_VAL) - *layer.sqnr_ci95->low) / 2 /
                             stats::kNormal95
                       : HUGE_VAL,
                   kLayerHolds);
      }
      std::ranges::sort(distances);
      const std::vector<std::string> difference = {
          figure_text(measure, r.judged.difference, true),
          interval_text(measure, r.judged.difference_low, r.judged.difference_high, true)};
      const std::string predicted =
          r.predicted_sqnr_db ? fmt::format("{:.1f}", *r.predicted_sqnr_db) : "- " + r.left_out;
      const std::string own = r.sqnr_db ? fmt::format("{:.1f}", *r.sqnr_db) : "NaN";
      const auto near = std::ranges::count_if(distances, [](double d) { return d <= kLayerHolds; });
      // The least that as large a share of the layers lies at or below.
      const auto below = [&](double share) {
        if (distances.empty()) return std::string("-");
        const auto rank = std::ceil(share * static_cast<double>(distances.size()));
        return fmt::format("{:.2f}", distances[static_cast<std::size_t>(rank) - 1]);
      };
      table.rows.push_back({result.units[i], predicted, own, figure_text(measure, r.judged.value),
                            difference[0], difference[1], std::to_string(distances.size()),
                            std::to_string(near), below(0.5), below(0.95), below(1)});
      if (found || !r.judged.difference_low || measure.factor * *r.judged.difference_low < -most)
        continue;
      found = true;
      smallest.rows.push_back({net, result.units[i], difference[0], difference[1], predicted, own});
    }
    if (!found) smallest.rows.push_back({net, "none", "-", "-", "-", "-"});
    out.tables.push_back(std::move(table));
  }
  out.add(judged.findings(), "layers");
  out.tables.insert(out.tables.begin(), smallest);
}

}  // namespace

extern const Experiment experiment_accumulator = {
    "accumulator",
    "how many bits an accumulator needs, by length, law, chunk and network",
    "numemu's own claim: a unit's description and the law of its products give the error of its "
    "sums (random walk of roundings, swamping, cuts of fused steps), and that of a network's "
    "layers.",
    {{"laws",
      "The SNR of sums under a law is within 1 dB of the unit's error model (derived here)."},
     {"layers",
      "The SQNR of layers, unit included, is within 1 dB of its prediction (derived here)."}},
    {{"lengths", "16,256", "16,64,256,1024,4096,16384,65536", "16,64,256,1024,4096,16384,65536",
      "products of a sum", wholes(1, 1 << 20)},
     {"laws", "normal,positive", "normal,positive,uniform,rectified",
      "normal,positive,uniform,rectified", "laws of the operands", list_of(check_sum_law)},
     {"units", "neutral.mac.e8m7,neutral.chunk64.e8m4",
      "neutral.mac.e8m3,neutral.mac.e8m5,neutral.mac.e8m7,neutral.mac.float16,"
      "neutral.mac.e8m7.rtz,neutral.mac.e8m7.sr8,neutral.chunk64.e8m5,ibm.hfp8.chunk64,"
      "neutral.mac.fixed24q8,nvidia.h100.wgmma.e4m3.f32",
      "neutral.mac.e8m3,neutral.mac.e8m5,neutral.mac.e8m7,neutral.mac.e8m10,neutral.mac.float16,"
      "neutral.mac.e8m7.rtz,neutral.mac.e8m7.sr8,neutral.chunk16.e8m5,neutral.chunk64.e8m5,"
      "neutral.chunk256.e8m5,ibm.hfp8.chunk64,neutral.mac.fixed24q8,neutral.kahan.e8m5,"
      "nvidia.h100.wgmma.e4m3.f32,nvidia.h100.mma.e4m3.f16",
      "units under laws", list_of(check_unit)},
     {"format", "float8_e4m3fn", "operands under laws", text_of(check_format)},
     {"products", "4e6", "2e7", "2e8", "most products measured of a case", real(1, 1e12)},
     {"nets", "mlp", "lenet,mlp", "lenet,mlp", "networks, or - for none", takes_networks_or_none()},
     data_setting(),
     {"net_format", "int8", "operands of the networks", text_of(check_format)},
     {"net_units", "neutral.mac.e8m3,neutral.mac.e8m7",
      "neutral.mac.e8m2,neutral.mac.e8m3,neutral.mac.e8m4,neutral.mac.e8m5,neutral.mac.e8m6,"
      "neutral.mac.e8m7,neutral.mac.e8m8,neutral.mac.e8m10,neutral.chunk16.e8m3,"
      "neutral.chunk16.e8m4,neutral.chunk64.e8m5,ibm.hfp8.chunk64",
      "neutral.mac.e8m2,neutral.mac.e8m3,neutral.mac.e8m4,neutral.mac.e8m5,neutral.mac.e8m6,"
      "neutral.mac.e8m7,neutral.mac.e8m8,neutral.mac.e8m10,neutral.chunk16.e8m3,"
      "neutral.chunk16.e8m4,neutral.chunk64.e8m5,ibm.hfp8.chunk64",
      "accumulators of the networks, the smallest first", list_of(check_unit)},
     {"most_loss", "0.5", "points that the interval may reach below float32", real(0, 100)},
     {"images", "200", "2000", "10000", "test samples", whole(1, 100'000'000)}},
    conclude<study_laws, study_nets>};

}  // namespace numemu::experiments
