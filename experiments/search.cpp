// Which of thousands of formats, scale rules and block sizes is best: all ranked by integrals over
// float32 tensors, the best refined by noise of random phase, the best of those measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "emu/stats/spearman.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/run_point.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/predict/version.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/pairs.hpp"
#include "experiments/report/record.hpp"
#include "experiments/search/cheapest.hpp"
#include "experiments/search/laws.hpp"
#include "experiments/search/ranking.hpp"
#include "formats/error.hpp"
#include "formats/portable/math.hpp"
#include "policies/canonical_json.hpp"
#include "policies/recipe/checkpoint.hpp"

namespace numemu::experiments {
namespace {

constexpr int kDigits = 9;
/// Probes that refine one configuration: fewer than a row's, since there are many.
constexpr std::int64_t kRefiningProbes = 8;
/// Integrals of a search, about 20 microseconds each: more are refused before any work.
constexpr double kMostIntegrals = 2e7;

std::string db_text(double db) { return std::isfinite(db) ? fmt::format("{:.2f}", db) : "-"; }
double db_of(double noise) { return noise > 0 ? -10 * portable::log10(noise) : HUGE_VAL; }

/// What refines a configuration.
struct Refined {
  double db = 0, gained_db = 0, error = 0;

  static void fields(auto& self, const auto& visit) {
    visit("sqnr_db", self.db);
    visit("gained_db", self.gained_db);
    visit("error_db", self.error);
  }
};

/// A configuration on its way through the stages.
struct Entry {
  Configured configured;
  std::string name;
  Json recipe;
  double linear_db = 0;
  Refined refined = {};
  bool random = false;  ///< of the control
  const Record* record = nullptr;

  double measured_db() const { return record != nullptr ? record->sqnr_db.value_or(NAN) : NAN; }
};

/// Everything that is ranked.
struct Space {
  RankedRole weights, activations;

  std::string name(const Configured& c) const {
    const std::string &w = weights.options[c.weight].name,
                      &a = activations.options[c.activation].name;
    return w == a ? w : w + " / " + a;
  }
  Json recipe(const Configured& c, const std::string& unit) const {
    Json recipe = {{"numemu_recipe", 1},
                   {"roles",
                    {{"weight", weights.options[c.weight].role},
                     {"activation", activations.options[c.activation].role}}}};
    if (!unit.empty()) recipe["gemms"] = {{"fprop", {{"unit", unit}}}};
    return recipe;
  }
  Entry entry(const Configured& c, const std::string& unit) const {
    return {.configured = c,
            .name = name(c),
            .recipe = recipe(c, unit),
            .linear_db = db_of(c.noise)};
  }
};

/// A setting of several whole numbers that may be empty.
SpacePlan plan_of(const Settings& settings) {
  SpacePlan plan;
  if (!settings.text("formats").empty()) plan.formats = settings.list("formats");
  plan.most_bits = std::clamp(static_cast<int>(std::floor(settings.number("bits"))), 2, 8);
  plan.blocks.clear();
  if (!settings.text("blocks").empty()) plan.blocks = settings.whole_numbers("blocks");
  plan.scales = settings.list("scales");
  plan.rules = settings.list("rules");
  return plan;
}

void require_space(const SpacePlan& plan, std::size_t options, std::size_t tensors) {
  if (options == 0)
    throw usage_error(fmt::format(
        "--bits: the space is empty: no format of {} to {} bits under these scales and rules",
        plan.least_bits, plan.most_bits));
  const double integrals = static_cast<double>(options) * static_cast<double>(tensors);
  if (integrals > kMostIntegrals)
    throw usage_error(
        fmt::format("--formats: {} options of {} tensors are {:.2g} integrals, expected at most "
                    "{:.2g}: fewer formats, blocks, scales or rules",
                    options, tensors, integrals, kMostIntegrals));
}

Space rank_space(const ExperimentRun& run, const Workbench& bench, const SpacePlan& plan,
                 std::vector<SearchOption> weights, std::vector<SearchOption> activations) {
  const std::vector<SearchOperand> operands =
      search_operands(bench.trained.graph, bench.reference);
  if (operands.empty())
    throw usage_error(fmt::format("--net: {} has no products", bench.trained.graph.name));
  require_space(plan, std::min(weights.size(), activations.size()), 1);
  require_space(plan, weights.size() + activations.size(), operands.size());
  run.say(fmt::format("gains of {} operands", operands.size()));
  const std::vector<double> gains = output_gains(operands, bench, run.folders.cache);
  run.say(fmt::format("noise of {} options of weights and {} of activations", weights.size(),
                      activations.size()));
  const policies::CalibrationPolicy calibration = policies::Recipe().calibration();
  return {rank_options(std::move(weights), true, operands, gains, calibration, bench.reference),
          rank_options(std::move(activations), false, operands, gains, calibration,
                       bench.reference)};
}

/// About `count` of a list, evenly, its ends among them.
template <class T>
std::vector<T> spread(const std::vector<T>& all, std::size_t count) {
  if (all.size() <= count) return all;
  std::vector<T> out;
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(all[i * (all.size() - 1) / std::max<std::size_t>(1, count - 1)]);
  return out;
}

/// Half of them the best by the linear ranking, half along its front; then the random ones.
std::vector<Entry> entries_of(const Space& space, const SearchRanking& ranking, std::size_t refine,
                              const std::string& unit) {
  std::vector<Entry> out;
  std::set<std::pair<std::size_t, std::size_t>> seen;
  const auto add = [&](const Configured& c, bool random) {
    if (!seen.emplace(c.weight, c.activation).second) return;
    out.push_back(space.entry(c, unit));
    out.back().random = random;
  };
  for (const Configured& c : ranking.random) add(c, true);
  for (const Configured& c : spread(ranking.front, (refine + 1) / 2)) add(c, false);
  for (const Configured& c : ranking.best) {
    if (out.size() >= refine + ranking.random.size()) break;
    add(c, false);
  }
  return out;
}

void refine(const ExperimentRun& run, const Workbench& bench, std::vector<Entry>& entries) {
  std::vector<TypedTrial<Refined>> trials;
  for (const Entry& entry : entries) {
    const policies::Recipe recipe = policies::Recipe::parse(entry.recipe, "search");
    Json point = {{"refined", kRefiningProbes},
                  {"prediction", kPredictionVersion},
                  {"recipe", recipe.json()},
                  {"data", bench.dataset.name()},
                  {"images", bench.dataset.digest()},
                  {"samples", bench.reference.samples()}};
    identify(point, bench.trained);
    trials.push_back({std::move(point), entry.name, [&bench, recipe] {
                        const LayerPrediction p =
                            predict_layers(bound_recipe(recipe, bench.trained, "search"),
                                           bench.reference, {}, kRefiningProbes);
                        return Refined{policies::significant(p.output.db, kDigits),
                                       policies::significant(p.output.gained_db, kDigits),
                                       policies::significant(p.output_error, kDigits)};
                      }});
  }
  const std::vector<Refined> refined = run_typed(run, std::move(trials));
  for (std::size_t i = 0; i < entries.size(); ++i) entries[i].refined = refined[i];
}

/// The best by refined noise first, NaN last.
bool quieter(const Entry& a, const Entry& b) {
  const auto of = [](const Entry& e) { return std::isnan(e.refined.db) ? -HUGE_VAL : e.refined.db; };
  return std::tuple(-of(a), a.configured.bits) < std::tuple(-of(b), b.configured.bits);
}

/// Runs the entries as the points of a sweep, whose rows the folder then has.
std::vector<Row> measure(const ExperimentRun& run, const Workbench& bench,
                         const std::vector<Entry>& entries) {
  Json points = Json::array();
  for (const Entry& entry : entries) points.push_back({{"recipe", entry.recipe}});
  const Json sweep = {{"numemu_sweep", 1},
                      {"net", run.settings.text("net")},
                      {"data", run.settings.text("data")},
                      {"eval_images", bench.eval_images},
                      {"points", points}};
  const SweepConfig config = parse_sweep(sweep.dump(), "search");
  RowStore store =
      open_rows(config, bench.dataset, bench.trained, run.out, run.shard, run.existing);
  SweepHooks hooks = run.hooks;
  if (run.hooks.on_point) {
    hooks.on_point = [&](std::size_t done, std::size_t kept, std::size_t total, Point point) {
      point.where = entries.at(std::min(done, entries.size() - 1)).name;
      run.hooks.on_point(done, kept, total, point);
    };
  }
  run_sweep(config, bench, store, run.out, run.shard, hooks);
  if (!run.shard.whole()) throw OthersMissing();
  return merge_rows(run.out);
}

ResultTable ranked_table(const Space& space, const SearchRanking& ranking, std::size_t shown) {
  ResultTable out{fmt::format("The best {} of {} configurations by the linear ranking (rne, saturate)",
                              std::min(shown, ranking.best.size()), ranking.configurations),
                  {"weights", "activations", "W bits", "A bits", "cost/MAC", "predicted SQNR dB"},
                  {}};
  for (const Configured& c : ranking.best) {
    if (out.rows.size() == shown) break;
    out.rows.push_back({space.weights.options[c.weight].name,
                        space.activations.options[c.activation].name,
                        fmt::format("{:.3f}", space.weights.ranks[c.weight].bits),
                        fmt::format("{:.3f}", space.activations.ranks[c.activation].bits),
                        fmt::format("{:.4g}", c.mac), db_text(db_of(c.noise))});
  }
  return out;
}

ResultTable measured_table(const Space& space, const std::vector<Entry>& entries) {
  const Measure& measure = *(entries.empty() ? judged_of({}) : entries[0].record->judged).measure;
  ResultTable out{"Predicted beside measured, the least predicted noise first",
                  {"weights", "activations", "drawn", "W bits", "A bits", "cost/MAC", "linear dB",
                   "random phase dB", "SQNR dB", value_title(measure),
                   measure.factor == 100 ? "change, points" : "change", "95 % interval"},
                  {}};
  for (const Entry& e : entries) {
    const JudgedFigure& judged = e.record->judged;
    out.rows.push_back(
        {space.weights.options[e.configured.weight].name,
         space.activations.options[e.configured.activation].name, e.random ? "at random" : "best",
         fmt::format("{:.3f}", space.weights.ranks[e.configured.weight].bits),
         fmt::format("{:.3f}", space.activations.ranks[e.configured.activation].bits),
         fmt::format("{:.4g}", e.configured.mac), db_text(e.linear_db), db_text(e.refined.db),
         db_text(e.measured_db()), figure_text(measure, judged.value),
         figure_text(measure, judged.difference, true),
         interval_text(measure, judged.difference_low, judged.difference_high, true)});
  }
  return out;
}

Chart front_chart(const std::vector<Entry>& refined, const std::vector<Entry>& measured) {
  Chart chart{.kind = Chart::Kind::points,
              .title = "Error against stored bits",
              .caption = "Refined configurations, and of those the measured ones. No configuration "
                         "of the front has fewer bits with as little noise.",
              .x = "stored bits per element, mean of weights and activations",
              .y = "SQNR of the output, dB"};
  std::vector<Entry> all = refined;
  std::ranges::stable_sort(all, {}, [](const Entry& e) { return e.configured.bits; });
  double best = -HUGE_VAL;
  for (const Entry& e : all) {
    const bool front = e.refined.db > best;
    if (front) best = e.refined.db;
    chart.of(front ? "front" : "other configurations")
        .points.push_back({.x = e.configured.bits, .y = e.refined.db});
  }
  for (const Entry& e : measured)
    chart.of(e.random ? "measured, drawn at random" : "measured")
        .points.push_back({.x = e.configured.bits, .y = e.measured_db()});
  return chart;
}

Chart accuracy_chart(const std::vector<Entry>& measured) {
  const Measure& measure = *measured.front().record->judged.measure;
  Chart chart{.kind = Chart::Kind::points,
              .title = fmt::format("{} against the cost of multiply-adds", measure.words),
              .caption = "Measured configurations with the interval of their figure. The cost is "
                         "bits times bits of the elements, over float32's.",
              .x = "cost per multiply-add",
              .y = value_title(measure)};
  for (const Entry& e : measured) {
    const JudgedFigure& judged = e.record->judged;
    if (!judged.value) continue;
    chart.of(e.random ? "drawn at random" : "best")
        .points.push_back({.x = e.configured.mac,
                           .y = measure.factor * *judged.value,
                           .low = measure.factor * judged.low.value_or(NAN),
                           .high = measure.factor * judged.high.value_or(NAN)});
  }
  return chart;
}

/// Predictions beside measurements, how well they rank, and what was missed by trusting them.
void judge(const std::vector<Entry>& entries, Conclusion& out) {
  Judged noise;
  std::vector<double> linear, refined, measured;
  for (const Entry& e : entries) {
    const double db = e.measured_db();
    if (!std::isfinite(db) || !std::isfinite(e.refined.db)) continue;
    linear.push_back(e.linear_db);
    refined.push_back(e.refined.db);
    measured.push_back(db);
    const double error = e.record->sqnr_error_db.value_or(0);
    noise.add("output SQNR in dB of " + e.name, e.refined.db, db, error > 0 ? error : HUGE_VAL,
              kLayerHolds);
  }
  out.add(noise.findings(), "noise");
  if (measured.size() < 4) return;
  const auto count = static_cast<std::int64_t>(measured.size());
  for (const auto& [name, predicted] : {std::pair("the integrals", &linear),
                                        std::pair("noise of random phase", &refined)}) {
    const double rho = stats::spearman(*predicted, measured);
    out.add(interval_finding(fmt::format("rank correlation of the SQNR that {} predict with the "
                                         "measured one, {} configurations",
                                         name, count),
                             1, rho, stats::spearman_interval(rho, count), at_least(0.9)),
            "order");
  }
  const auto trusted = std::ranges::max_element(refined) - refined.begin();
  const double best = *std::ranges::max_element(measured),
               regret = best - measured[static_cast<std::size_t>(trusted)];
  out.add(exact_finding("regret in dB: the best measured SQNR less that of the configuration that "
                        "is predicted to be the best",
                        0, regret, regret <= kLayerHolds, at_most(kLayerHolds)),
          "regret");
}

/// The recipe of an answer, as a file that other commands take.
std::string recipe_words(const Json& recipe) {
  return policies::Recipe::parse(recipe, "search").json()["roles"].dump();
}

void say_cheapest(const std::vector<Candidate>& candidates, const std::vector<Entry>& front,
                  const Cheapest& cheapest, double limit, Conclusion& out) {
  ResultTable table{
      fmt::format("Candidates measured for a loss of at most {:g} points, in their order",
                  100 * limit),
      {"configuration", "bits", "test samples", "loss, points", "simultaneous interval", "kept"},
      {}};
  for (const Tried& tried : cheapest.order) {
    table.rows.push_back(
        {candidates[tried.candidate].name,
         fmt::format("{:.3f}", front[tried.candidate].configured.bits),
         std::to_string(tried.answers.n), fmt::format("{:+.2f}", 100 * tried.mean()),
         fmt::format("[{:+.2f}, {:+.2f}]", 100 * tried.loss.low, 100 * tried.loss.high),
         tried.keeps ? (*tried.keeps ? "yes" : "no") : "undecided"});
  }
  out.tables.push_back(table);
  if (!cheapest.found) {
    out.sentences.push_back(fmt::format(
        "No configuration surely loses at most {:g} points: of {} on the front {} were measured "
        "(95 % for all {} looks together, Bonferroni).",
        100 * limit, candidates.size(), cheapest.order.size(), cheapest.looks));
    return;
  }
  const Tried& found = cheapest.order[*cheapest.found];
  out.sentences.push_back(fmt::format(
      "The cheapest configuration that surely loses at most {:g} points is {} with {:.3f} bits: it "
      "loses {:+.2f} [{:+.2f}, {:+.2f}] points on {} test samples (95 % for all {} looks together, "
      "Bonferroni). Its roles: {}",
      100 * limit, candidates[found.candidate].name, front[found.candidate].configured.bits,
      100 * found.mean(), 100 * found.loss.low, 100 * found.loss.high, found.answers.n,
      cheapest.looks, recipe_words(candidates[found.candidate].recipe)));
}

Conclusion run_network(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  const SpacePlan plan = plan_of(settings);
  std::vector<SearchOption> weights = space_of(plan, "weight"),
                            activations = space_of(plan, "activation");
  require_space(plan, std::min(weights.size(), activations.size()), 1);
  const std::string &net = settings.text("net"), &data = settings.text("data"),
                    &unit = settings.text("unit");
  SearchBudget budget{.bits = settings.number("bits")};
  if (!settings.text("mac").empty()) budget.mac = settings.number("mac");
  const bool limited = !settings.text("max_loss").empty();
  const auto refined_count = static_cast<std::size_t>(settings.integer("refine")),
             measured_count = static_cast<std::size_t>(settings.integer("measured")),
             random_count = static_cast<std::size_t>(settings.integer("random"));
  if (limited && !run.shard.whole())
    throw usage_error("--shard: expected none beside max_loss, which measures one by one");
  net::Dataset dataset = net::load_dataset(data, run.folders.cache);
  if (limited) require_one_class(dataset, "max_loss");
  TrainedNet trained = load_trained_net(net, dataset, run.folders);
  run.say(fmt::format("loading {} on {}", net, data));
  const Workbench bench(std::move(dataset), std::move(trained), settings.integer("images"),
                        {run.folders.cache, run.existing == Existing::fresh, run.on_bench});

  const Space space = rank_space(run, bench, plan, std::move(weights), std::move(activations));
  const SearchRanking ranking = rank_configurations(space.weights, space.activations, budget,
                                                    std::max<std::size_t>(refined_count, 20),
                                                    random_count, run.seed);
  if (ranking.configurations == 0)
    throw usage_error(fmt::format("--bits: no configuration stores at most {:g} bits{}",
                                  budget.bits, std::isfinite(budget.mac) ? " at that cost" : ""));
  std::vector<Entry> refined = entries_of(space, ranking, refined_count, unit);
  refine(run, bench, refined);
  std::ranges::stable_sort(refined, quieter);
  std::vector<Entry> measured;
  std::size_t best = 0;
  for (const Entry& entry : refined)
    if (entry.random || best++ < measured_count) measured.push_back(entry);

  Conclusion conclusion;
  conclusion.sentences = baseline_notes(bench.trained);
  conclusion.sentences.push_back(fmt::format(
      "{} configurations of {} options of weights and {} of activations were ranked, {} refined by "
      "noise of random phase, {} measured, {} of them drawn at random.",
      ranking.configurations, space.weights.options.size(), space.activations.options.size(),
      refined.size(), measured.size(), std::ranges::count(measured, true, &Entry::random)));
  if (limited) {
    std::vector<Entry> front;
    std::vector<Candidate> candidates;
    std::vector<Entry> by_bits = refined;
    std::ranges::stable_sort(by_bits, {}, [](const Entry& e) { return e.configured.bits; });
    for (const Entry& e : by_bits) {
      if (!front.empty() && !(e.refined.db > front.back().refined.db)) continue;
      front.push_back(e);
      candidates.push_back({e.name, e.recipe});
    }
    const double limit = settings.number("max_loss") / 100;
    const Cheapest cheapest = cheapest_within(run, bench, candidates, limit);
    say_cheapest(candidates, front, cheapest, limit, conclusion);
    if (cheapest.found) {
      const Entry& found = front[cheapest.order[*cheapest.found].candidate];
      if (std::ranges::find(measured, found.name, &Entry::name) == measured.end())
        measured.push_back(found);
    }
  }
  conclusion.tables.push_back(ranked_table(space, ranking, 20));
  if (measured.empty()) return conclusion;
  const std::vector<Row> rows = measure(run, bench, measured);
  const std::vector<Record> records = read_records(rows, run.out);
  for (std::size_t i = 0; i < measured.size(); ++i) measured[i].record = &records.at(i);
  conclusion.tables.insert(conclusion.tables.begin(), measured_table(space, measured));
  conclusion.charts = {front_chart(refined, measured), accuracy_chart(measured)};
  judge(measured, conclusion);
  if (const std::string sentence = best_of_all(configurations(records)); !sentence.empty())
    conclusion.sentences.push_back(sentence);
  return conclusion;
}

Conclusion run_search(const ExperimentRun& run) {
  if (run.settings.text("dist").empty()) return run_network(run);
  const SpacePlan plan = plan_of(run.settings);
  const std::vector<SearchOption> options = space_of(plan, "weight");
  const std::vector<std::string> laws = run.settings.list("dist");
  require_space(plan, options.size(), laws.size());
  Conclusion conclusion;
  for (const std::string& law : laws)
    conclusion.tables.push_back(law_table(law, options, run.settings.number("bits"), run.seed));
  return conclusion;
}

}  // namespace

extern const Experiment experiment_search;
const Experiment experiment_search = {
    "search",
    "which of thousands of formats, scale rules and block sizes is best at so many bits",
    "numemu's own claim: the noise of a format on each tensor, times the gain of the tensor to the "
    "output, ranks recipes that nobody has run.",
    {{"noise", "The output's SQNR is within 1 dB of that by noise of random phase."},
     {"order", "Predictions rank configurations: rank correlation above 0.9."},
     {"regret", "The configuration predicted to be the best is within 1 dB of the best measured."}},
    {{"net", "lenet", "lenet", "lenet", "network or file", takes_network()},
     {"data", "glyphs", "glyphs", "glyphs", "data set", takes_data_set()},
     {"dist", "", "", "",
      "laws or .npy files that are searched in place of a network: normal, laplace, ...",
      list_of().or_nothing()},
     {"bits", "4.5", "4.5", "4.5",
      "most stored bits of an element with its scales, of the weights and of the activations",
      real(2, 16)},
     {"mac", "", "", "", "most cost of a multiply-add: bits times bits over float32's",
      real(0, 1).or_nothing()},
     {"max_loss", "", "", "",
      "points of top-1: the cheapest configuration that surely loses no more",
      real(0, 100).or_nothing()},
     {"formats", "", "", "", "element formats; all of as many bits", list_of().or_nothing()},
     {"blocks", "16,32", "8,16,32,64,128", "8,16,32,64,128", "sizes of blocks; none",
      wholes(1, 1 << 20).or_nothing()},
     {"scales", "float8_e4m3fn,float16", "float16,float8_e4m3fn,float8_e5m2",
      "float16,bfloat16,float8_e4m3fn,float8_e5m2", "scale formats of groups", list_of()},
     {"rules", "absmax,floor,even", "absmax,pow2(absmax,up),floor,ceil,even,nearest",
      "absmax,pow2(absmax,up),floor,ceil,even,nearest", "scale rules", list_of()},
     {"unit", "", "", "", "unit of every forward product; f32.sequential"},
     {"refine", "12", "64", "256", "configurations refined by noise of random phase",
      whole(0, 10000)},
     {"measured", "3", "8", "32", "the best of them, measured", whole(0, 1000)},
     {"random", "2", "8", "100", "further ones, drawn at random and measured", whole(0, 1000)},
     {"images", "300", "2000", "10000", "test samples", whole(1, 100'000'000)}},
    run_search};

}  // namespace numemu::experiments
