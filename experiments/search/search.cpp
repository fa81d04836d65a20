// Which of thousands of formats, scale rules and block sizes is best: all ranked by integrals over
// float32 tensors, the best refined by noise of random phase, the best of those measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <utility>

#include "experiments/engine/bench/bench_memory.hpp"
#include "experiments/engine/experiment.hpp"
#include "experiments/engine/run_points.hpp"
#include "experiments/engine/trials.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "experiments/report/pairs.hpp"
#include "experiments/report/report_row.hpp"
#include "experiments/search/cheapest.hpp"
#include "experiments/search/conclusion.hpp"
#include "experiments/search/ranking.hpp"
#include "experiments/search/stages.hpp"
#include "formats/blocks/block_format.hpp"
#include "formats/error.hpp"
#include "formats/scaling/scale_rule.hpp"
#include "formats/storage/json_reader.hpp"
#include "policies/notes/notes.hpp"
#include "policies/recipe/recipe.hpp"
#include "policies/tune/base/tune_step.hpp"

namespace numemu::experiments {

namespace {

/// How many of these are the random control, which is no sample of one size.
std::string drawn_text(const std::vector<SearchEntry>& measured) {
  double bits = 0, drawn = 0;
  for (const SearchEntry& e : measured) {
    bits += e.random ? e.configured.bits : 0;
    drawn += e.random;
  }
  if (drawn == 0) return "none drawn at random";
  return fmt::format(
      "{} drawn evenly from all within the budget, which store {:.2f} bits on average", drawn,
      bits / drawn);
}

/// float32 elements of what ranking holds at once: a few sorted samples for each of some threads,
/// and what it knows of each option.
constexpr std::int64_t kSearchElements = std::int64_t{1} << 24;
/// Integrals of a search: more are refused before any work.
constexpr double kMostIntegrals = 2e7;
/// Of a processor for kSampleElements numbers, sorts included: ResNet-20 5e-4, a transformer 8e-4.
constexpr double kIntegralSeconds = 6e-4;

void check_search_unit(const std::string& name) { unit::find_unit(name); }
void check_rule(const std::string& name) { require_scale_rule(name); }
void check_scale(const std::string& name) { find_block_format("group(int4,16," + name + ")"); }
void check_tune_steps(const std::string& steps) { policies::parse_tune_steps(steps, "steps"); }

/// Where the loss is what is limited, elements of 8 bits in the smallest blocks belong to the
/// space.
double most_bits(const Settings& settings) {
  if (!settings.text("bits").empty()) return settings.number("bits");
  return settings.text("max_loss").empty() ? 4.5 : 9;
}

SpacePlan plan_of(const Settings& settings) {
  SpacePlan plan{.named = settings.named("formats")};
  if (!settings.text("formats").empty()) plan.formats = settings.list("formats");
  plan.most_stored = most_bits(settings);
  plan.most_bits = std::clamp(static_cast<int>(std::floor(plan.most_stored)), 2, 8);
  plan.blocks.clear();
  if (!settings.text("blocks").empty()) plan.blocks = settings.whole_numbers("blocks");
  plan.scales = settings.list("scales");
  plan.more_rules = settings.text("rules").empty();
  if (!plan.more_rules) plan.rules = settings.list("rules");
  return plan;
}

void require_options(const Settings& settings, const SpacePlan& plan, std::size_t options) {
  if (options == 0)
    throw usage_error(fmt::format(
        "{}: the space is empty: no format of {} to {} bits under these scales and rules",
        settings.named("bits"), plan.least_bits, plan.most_bits));
}

/// `each` on a tensor.
void require_integrals(const SpacePlan& plan, std::size_t options, double each,
                       std::size_t tensors) {
  const double integrals = each * static_cast<double>(tensors);
  if (integrals > kMostIntegrals)
    throw usage_error(fmt::format(
        "{}: {} options of {} tensors are {:.2g} integrals, about {:.0f} s of a "
        "processor; expected at most {:.2g}: fewer formats, blocks, scales or rules",
        plan.named, options, tensors, integrals, kIntegralSeconds * integrals, kMostIntegrals));
}

SearchSpace rank_space(const ExperimentRun& run, const Workbench& bench, const SpacePlan& plan,
                       std::vector<SearchOption> weights, std::vector<SearchOption> activations,
                       std::vector<RankedUnit> units, const SearchBudget& budget,
                       std::vector<std::string>& notes) {
  const std::vector<SearchOperand> operands = search_operands(bench.trained.graph, bench.reference);
  if (operands.empty())
    throw usage_error(
        fmt::format("{}: {} has no products", run.settings.named("net"), bench.trained.graph.name));
  const double of_weights = integrals_of(weights), of_activations = integrals_of(activations);
  require_integrals(plan, weights.size() + activations.size(), of_weights + of_activations,
                    operands.size());
  run.say(fmt::format("gains of {} operands", operands.size()));
  const std::vector<double> gains = output_gains(operands, bench, run.folders.cache);
  const auto tensors = std::ranges::count_if(operands, &SearchOperand::weight);
  const double integrals = of_weights * static_cast<double>(tensors) +
                           of_activations * static_cast<double>(std::ssize(operands) - tensors);
  run.say(fmt::format(
      "noise of {} options of weights and {} of activations, about {:.0f} s of a processor",
      weights.size(), activations.size(), kIntegralSeconds * integrals));
  Work work(run.on_bench, integrals);
  const policies::CalibrationPolicy calibration = policies::Recipe().calibration();
  const auto useful = [&](std::vector<bool> RankedUnit::*taken) {
    return [&, taken](std::size_t option, double bits) {
      return budget.allows(bits) && std::ranges::any_of(units, [&](const RankedUnit& unit) {
               return (unit.*taken).empty() || (unit.*taken)[option];
             });
    };
  };
  SearchSpace space;
  space.weights = rank_options(std::move(weights), true, operands, gains, calibration,
                               bench.reference, useful(&RankedUnit::weights), &work);
  space.activations = rank_options(std::move(activations), false, operands, gains, calibration,
                                   bench.reference, useful(&RankedUnit::activations), &work);
  space.units = std::move(units);
  notes = add_unit_noise(run, bench, space, budget);
  return space;
}

/// What --max-loss finds: the answer, which joins what is measured, tables and a figure.
void find_cheapest(const ExperimentRun& run, const Workbench& bench,
                   std::vector<SearchEntry> refined, std::vector<SearchEntry>& measured,
                   Conclusion& conclusion) {
  std::ranges::stable_sort(refined, {}, [](const SearchEntry& e) {
    return std::pair(e.configured.bits, e.configured.mac);
  });
  std::vector<SearchEntry> front;
  std::vector<LossCandidate> candidates;
  for (const SearchEntry& e : refined) {
    if (std::isnan(e.refined.db) || (!front.empty() && e.refined.db <= front.back().refined.db))
      continue;
    front.push_back(e);
    candidates.push_back({e.name, e.recipe});
  }
  const double limit = run.settings.number("max_loss") / 100;
  const std::string& steps = run.settings.text("tune");
  const std::size_t searches = steps.empty() ? 1 : 2;
  const Cheapest cheapest = cheapest_within(run, bench, candidates, limit, searches);
  conclusion.charts.push_back(loss_chart(limit));
  say_cheapest(run, front, cheapest, limit, nullptr, conclusion);
  if (cheapest.found) {
    const SearchEntry& found = front[cheapest.order[*cheapest.found].candidate];
    if (std::ranges::find(measured, found.name, &SearchEntry::name) == measured.end())
      measured.push_back(found);
    front.resize(cheapest.order[*cheapest.found].candidate);
    candidates.resize(front.size());
  }
  if (steps.empty()) return;
  if (front.empty()) {
    conclusion.sentences.emplace_back("No candidate is cheaper: none was tuned.");
    return;
  }
  const LossTuning tuning{.steps = steps};
  const Cheapest tuned = cheapest_within(run, bench, candidates, limit, searches, &tuning);
  say_cheapest(run, front, tuned, limit, &tuning, conclusion);
}

/// Refuses the folder of a search whose points would be others, before any work. Those of more
/// measured or tuned configurations are the same and more.
void require_own_points(const ExperimentRun& run) {
  const std::string path = run.out + "/experiment.json";
  if (run.existing == Existing::fresh || !std::filesystem::exists(path) || !has_rows(run.out))
    return;
  const ExperimentFile before = read_experiment(parse_json(read_text(path), path));
  std::string other = before.seed == run.seed ? "" : "seed";
  for (const auto& [key, value] : run.settings.values()) {
    if (key == "measured" || key == "random" || key == "tune") continue;
    const Json* const found = json_at(before.settings, {key.c_str()});
    if (other.empty() && (found == nullptr || *found != Json(value))) other = key;
  }
  if (!other.empty())
    throw usage_error(
        fmt::format("--out: {} has a search of another {}: expected another folder, or --fresh",
                    run.out, run.settings.named(other)));
}

/// What a search of a network is asked, checked before any work.
struct NetworkPlan {
  SpacePlan space;
  std::vector<SearchOption> weights, activations;
  std::string rules;  ///< a sentence: those that are searched
  std::vector<RankedUnit> units;
  SearchBudget budget;
  bool limited = false;  ///< by the loss
  std::size_t refined = 0, measured = 0, random = 0;
};

NetworkPlan network_plan(const ExperimentRun& run) {
  const Settings& settings = run.settings;
  NetworkPlan out;
  out.space = plan_of(settings);
  out.weights = space_of(out.space, "weight");
  out.activations = space_of(out.space, "activation");
  require_options(settings, out.space, std::min(out.weights.size(), out.activations.size()));
  out.rules = fmt::format(" Scale rules searched: weights {}; activations {}.",
                          rules_text(out.weights), rules_text(out.activations));
  std::vector<std::string> names;
  if (!settings.text("units").empty()) names = settings.list("units");
  out.units = ranked_units(names, out.weights, out.activations, settings.named("units"));
  out.budget.bits = most_bits(settings);
  if (!settings.text("mac_cost").empty()) out.budget.mac = settings.number("mac_cost");
  if (const double least = least_cost(out.weights, out.activations, out.units);
      least > out.budget.mac)
    throw usage_error(fmt::format("{}: every configuration costs at least {:.4g}, more than {:g}",
                                  settings.named("mac_cost"), least, out.budget.mac));
  out.limited = !settings.text("max_loss").empty();
  if (!out.limited && !settings.text("tune").empty())
    throw usage_error(fmt::format("{}: expected {} beside it", settings.named("tune"),
                                  settings.named("max_loss")));
  out.refined = static_cast<std::size_t>(settings.integer("refine"));
  out.measured = static_cast<std::size_t>(settings.integer("measured"));
  out.random = static_cast<std::size_t>(settings.integer("random"));
  if (out.limited && out.refined == 0)
    throw usage_error(fmt::format("{}: expected at least 1 beside {}, whose candidates are refined",
                                  settings.named("refine"), settings.named("max_loss")));
  if (out.limited && !run.shard.whole())
    throw usage_error(fmt::format("--shard: expected none beside {}, which measures one by one",
                                  settings.named("max_loss")));
  return out;
}

Workbench network_bench(const ExperimentRun& run, bool limited) {
  const Settings& settings = run.settings;
  const std::string& net = settings.text("net");
  net::Dataset dataset = net::load_dataset(settings.text("data"), run.folders.cache);
  if (limited) require_one_class(dataset, settings.named("max_loss"));
  TrainedNet trained = load_with_data(net, dataset, run.folders);
  require_bench_memory(trained.graph, baseline_graph(trained), dataset, settings.integer("images"),
                       kSearchElements);
  return open_bench(run, net, std::move(dataset), std::move(trained), settings.integer("images"));
}

/// The sentences in front: how much was searched, and what was not as asked.
std::vector<std::string> search_sentences(const ExperimentRun& run, const Workbench& bench,
                                          const NetworkPlan& plan, const SearchSpace& space,
                                          const SearchRanking& ranking, std::size_t refined,
                                          const std::vector<SearchEntry>& measured,
                                          std::vector<std::string> notes) {
  const Settings& settings = run.settings;
  std::vector<std::string> said = baseline_notes(bench.trained);
  said.push_back(fmt::format(
      "{} configurations of {} options of weights, {} of activations and {} units were ranked, {} "
      "refined by noise of random phase, {} measured, {}.",
      ranking.configurations, space.weights.distinct(), space.activations.distinct(),
      space.units.size(), refined, measured.size(), drawn_text(measured)));
  if (plan.measured > plan.refined)
    said.push_back(fmt::format("{}: {} of the best are measured, not {}: no more were refined.",
                               settings.named("refine"), plan.refined, plan.measured));
  if (settings.integer("images") > bench.eval_images)
    said.push_back(fmt::format("{}: the data set has {} test samples, all of which were taken.",
                               settings.named("images"), bench.eval_images));
  std::ranges::move(notes, std::back_inserter(said));
  std::ranges::move(
      policies::notes_on_outputs(bench.trained.graph, "configurations are ranked by that one"),
      std::back_inserter(said));
  return said;
}

/// Measures the entries, at least one: tables, charts, verdicts and the recipe of the best.
void conclude_measured(const ExperimentRun& run, const Workbench& bench, const NetworkPlan& plan,
                       const SearchSpace& space, const SearchRanking& ranking,
                       const std::vector<SearchEntry>& refined, std::vector<SearchEntry>& measured,
                       Conclusion& conclusion) {
  const std::vector<Row> rows = measure(run, bench, measured);
  std::vector<ReportRow> records = report_rows(rows, run.out);
  for (std::size_t i = 0; i < measured.size(); ++i) {
    records.at(i).name = records[i].label = measured[i].name;  // as the tables have it
    measured[i].record = &records[i];
  }
  conclusion.tables.insert(conclusion.tables.end() - 1, measured_table(space, measured));
  conclusion.charts.push_back(front_chart(refined, measured));
  if (measured.size() > 1) conclusion.charts.push_back(accuracy_chart(measured));
  judge_search(measured, conclusion);
  if (!plan.limited) {
    conclusion.answer = best_sentence(space, ranking, refined, measured, plan.budget);
    const auto trusted = std::ranges::find(measured, false, &SearchEntry::random);
    if (trusted != measured.end())
      conclusion.sentences.push_back(fmt::format(
          "Its recipe: {} in this folder", write_search_recipe(run.out, "best", trusted->recipe)));
  }
  if (const std::string sentence = best_of_all(configurations(records)); !sentence.empty())
    conclusion.sentences.push_back(sentence);
}

Conclusion run_network(const ExperimentRun& run) {
  require_own_points(run);
  NetworkPlan plan = network_plan(run);
  const Workbench bench = network_bench(run, plan.limited);
  std::vector<std::string> notes;
  const SearchSpace space =
      rank_space(run, bench, plan.space, std::move(plan.weights), std::move(plan.activations),
                 std::move(plan.units), plan.budget, notes);
  const SearchRanking ranking = rank_configurations(
      space, plan.budget, std::max<std::size_t>(plan.refined, 20), plan.random, run.seed);
  if (ranking.configurations == 0)
    throw usage_error(fmt::format("{}: no configuration stores at most {:g} bits{}",
                                  run.settings.named("bits"), plan.budget.bits,
                                  std::isfinite(plan.budget.mac) ? " at that cost" : ""));
  // Where the loss is limited what matters lies along the front.
  const Along along = plan.limited ? Along::front : Along::both;
  std::vector<SearchEntry> refined = entries_of(space, ranking, plan.refined, along);
  refine(run, bench, refined);
  std::ranges::stable_sort(refined, quieter);
  std::vector<SearchEntry> measured = to_measure(refined, plan.measured, space.units.size(), along);
  Conclusion conclusion;
  if (plan.limited) find_cheapest(run, bench, refined, measured, conclusion);
  const std::vector<std::string> said = search_sentences(
      run, bench, plan, space, ranking, refined.size(), measured, std::move(notes));
  conclusion.sentences.insert(conclusion.sentences.begin(), said.begin(), said.end());
  conclusion.tables.push_back(ranked_table(space, ranking, 20));
  if (!measured.empty())
    conclude_measured(run, bench, plan, space, ranking, refined, measured, conclusion);
  else if (!plan.limited)
    conclusion.answer = best_sentence(space, ranking, refined, measured, plan.budget);
  conclusion.answer += plan.rules;
  return conclusion;
}

Conclusion run_search(const ExperimentRun& run) {
  if (run.settings.text("dist").empty()) return run_network(run);
  if (has_rows(run.out))
    throw usage_error(
        fmt::format("--out: {} has the rows of another search; laws have none: "
                    "expected another folder",
                    run.out));
  const SpacePlan plan = plan_of(run.settings);
  std::vector<SearchOption> options = space_of(plan, "weight");
  // One line has one channel.
  std::erase_if(options, [](const SearchOption& option) {
    return option.policy.granularity == policies::Granularity::channel;
  });
  const std::vector<std::string> laws = run.settings.list("dist");
  const double each = integrals_of(options), all = each * static_cast<double>(laws.size());
  require_options(run.settings, plan, options.size());
  require_integrals(plan, options.size(), each, laws.size());
  run.say(fmt::format("noise of {} options under {} law{}, about {:.0f} s of a processor",
                      options.size(), laws.size(), laws.size() == 1 ? "" : "s",
                      kIntegralSeconds * all * kLawDraws / kSampleElements));
  Work work(run.on_bench, all);
  Conclusion conclusion;
  for (const std::string& law : laws) {
    ResultTable table = law_table(law, options, most_bits(run.settings), run.seed, &work);
    const std::vector<std::string>& best = table.rows.front();
    const bool interval = best.size() > 4 && !best[3].empty();
    conclusion.answer +=
        fmt::format("{}{}: {}, {} bits, has {} dB{}", conclusion.answer.empty() ? "" : "; ", law,
                    best[0], best[1], best[2], interval ? " " + best[3] : " on these numbers");
    conclusion.tables.push_back(std::move(table));
  }
  conclusion.answer += fmt::format(". Scale rules searched: {}.", rules_text(options));
  return conclusion;
}

}  // namespace

extern const Experiment experiment_search = {
    "search",
    "which of thousands of formats, scale rules and block sizes is best at so many bits",
    "numemu's own claim: the noise of a format on each tensor, times the gain of the tensor to the "
    "output, ranks recipes that nobody has run.",
    {{"noise", "The output's SQNR is within 1 dB of that by noise of random phase (derived here)."},
     {"order", "Predictions rank configurations: rank correlation above 0.9 (derived here)."},
     {"regret",
      "The configuration predicted to be the best is within 1 dB of the best measured (derived "
      "here)."}},
    {{"net", "lenet", "network or file", takes_network()},
     data_setting(),
     {"dist", "",
      "laws or .npy files that are searched in place of a network: normal, laplace, ...",
      list_of().or_nothing()},
     {"bits", "",
      "most stored bits of an element with its scales, of the weights and of the activations; 4.5, "
      "beside max_loss 9",
      real(2, 16).or_nothing()},
     {"mac_cost", "",
      "most cost of a multiply-add over float32's: bits times bits, and the adders' bits",
      real(0, 1).or_nothing()},
     {"max_loss", "", "points of top-1: the cheapest configuration that surely loses no more",
      real(0, 100).or_nothing()},
     {"tune", "", "steps that tune cheaper configurations, the last step of max_loss",
      text_of(check_tune_steps).or_nothing()},
     {"formats", "", "element formats; all of as many bits", list_of().or_nothing()},
     {"blocks", "16,32", "8,16,32,64,128", "8,16,32,64,128", "sizes of blocks; none",
      wholes(1, 1 << 20).or_nothing()},
     {"scales", "float8_e4m3fn,float16", "float16,float8_e4m3fn,float8_e5m2",
      "float16,bfloat16,float8_e4m3fn,float8_e5m2", "scale formats of groups",
      list_of(check_scale)},
     {"rules", "absmax,floor,even", "", "",
      "scale rules; those that hardware has, four-over-six in groups and mse of weights",
      list_of(check_rule).or_nothing()},
     {"units", "", "units of forward products; f32.sequential",
      list_of(check_search_unit).or_nothing()},
     {"refine", "12", "64", "256", "configurations refined by noise of random phase",
      whole(0, 10000)},
     {"measured", "3", "8", "32", "the best of them, measured", whole(0, 1000)},
     {"random", "2", "8", "100", "further ones, drawn at random and measured", whole(0, 1000)},
     {"images", "300", "2000", "10000", "test samples", whole(1, 100'000'000)}},
    run_search};

}  // namespace numemu::experiments
