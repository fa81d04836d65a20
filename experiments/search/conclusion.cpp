#include "experiments/search/conclusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "emu/stats/spearman.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/predict/layer_noise.hpp"
#include "experiments/report/judged_evaluation.hpp"
#include "formats/portable/math.hpp"
#include "formats/storage/atomic_file.hpp"

namespace numemu::experiments {
namespace {

std::string db_text(double db) { return std::isfinite(db) ? fmt::format("{:.2f}", db) : "-"; }

/// Whether no other one is as good in bits, cost, SQNR and accuracy, and better in one of them.
bool on_front(const SearchEntry& e, const std::vector<SearchEntry>& all) {
  const auto figures = [](const SearchEntry& of) {
    const double db = of.measured_db();
    return std::array{of.configured.bits, of.configured.mac, std::isnan(db) ? HUGE_VAL : -db,
                      of.record->judged.loss().value_or(HUGE_VAL)};
  };
  const auto own = figures(e);
  return std::ranges::none_of(all, [&](const SearchEntry& other) {
    const auto its = figures(other);
    return its != own && std::ranges::equal(its, own, [](double a, double b) { return a <= b; });
  });
}

}  // namespace

ResultTable ranked_table(const SearchSpace& space, const SearchRanking& ranking,
                         std::size_t shown) {
  ResultTable out{
      fmt::format("The best {} of {} configurations by the linear ranking (rne, saturate)",
                  std::min(shown, ranking.best.size()), ranking.configurations),
      {"weights", "activations", "unit", "W bits", "A bits", "cost/MAC", "predicted SQNR dB"},
      {}};
  for (const Configured& c : ranking.best) {
    if (out.rows.size() == shown) break;
    out.rows.push_back({space.weights.options[c.weight].name,
                        space.activations.options[c.activation].name, space.unit_name(c),
                        fmt::format("{:.3f}", space.weights.ranks[c.weight].bits),
                        fmt::format("{:.3f}", space.activations.ranks[c.activation].bits),
                        fmt::format("{:.4g}", c.mac), db_text(search_db(c.noise))});
  }
  return out;
}

ResultTable measured_table(const SearchSpace& space, const std::vector<SearchEntry>& entries) {
  const Measure& measure = *(entries.empty() ? judged_of({}) : entries[0].record->judged).measure;
  ResultTable out{"Predicted beside measured, the least predicted noise first",
                  {"weights", "activations", "unit", "drawn", "W bits", "A bits", "cost/MAC",
                   "linear dB", "random phase dB", "SQNR dB", value_title(measure),
                   measure.factor == 100 ? "change, points" : "change", "95 % interval", "front"},
                  {}};
  for (const SearchEntry& e : entries) {
    const JudgedFigure& judged = e.record->judged;
    out.rows.push_back(
        {space.weights.options[e.configured.weight].name,
         space.activations.options[e.configured.activation].name, space.unit_name(e.configured),
         e.random ? "at random" : "best",
         fmt::format("{:.3f}", space.weights.ranks[e.configured.weight].bits),
         fmt::format("{:.3f}", space.activations.ranks[e.configured.activation].bits),
         fmt::format("{:.4g}", e.configured.mac), db_text(e.linear_db), db_text(e.refined.db),
         db_text(e.measured_db()), figure_text(measure, judged.value),
         figure_text(measure, judged.difference, true),
         interval_text(measure, judged.difference_low, judged.difference_high, true),
         on_front(e, entries) ? "yes" : "-"});
  }
  return out;
}

Chart front_chart(const std::vector<SearchEntry>& refined,
                  const std::vector<SearchEntry>& measured) {
  Chart chart{.kind = Chart::Kind::points,
              .title = "Error against stored bits",
              .caption =
                  "Refined configurations, and of those the measured ones. No configuration "
                  "of the front has fewer bits with as little noise.",
              .x = "stored bits per element, mean of weights and activations",
              .y = "SQNR of the output, dB"};
  std::vector<SearchEntry> all = refined;
  std::ranges::stable_sort(all, {}, [](const SearchEntry& e) { return e.configured.bits; });
  double best = -HUGE_VAL;
  for (const SearchEntry& e : all) {
    const bool front = e.refined.db > best;
    if (front) best = e.refined.db;
    chart.of(front ? "front" : "other configurations")
        .points.push_back({.x = e.configured.bits, .y = e.refined.db});
  }
  for (const SearchEntry& e : measured)
    chart.of(e.random ? "measured, drawn at random" : "measured")
        .points.push_back({.x = e.configured.bits, .y = e.measured_db()});
  return chart;
}

Chart accuracy_chart(const std::vector<SearchEntry>& measured) {
  const Measure& measure = *measured.front().record->judged.measure;
  Chart chart{.kind = Chart::Kind::points,
              .title = fmt::format("{} against the cost of multiply-adds", measure.words),
              .caption =
                  "Measured configurations with the interval of their figure. The cost is "
                  "bits times bits of the elements, and the adders' bits, over float32's.",
              .x = "cost per multiply-add",
              .y = value_title(measure)};
  for (const SearchEntry& e : measured) {
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

Chart loss_chart(double limit) {
  return {.kind = Chart::Kind::points,
          .title = "Loss against stored bits",
          .caption = fmt::format(
              "Candidates of the front that were tried, with intervals that hold for all looks of "
              "the search together. Within the limit are those whose interval ends below {:g} "
              "points.",
              100 * limit),
          .x = "stored bits per element, mean of weights and activations",
          .y = "loss of top-1, points"};
}

std::string best_sentence(const SearchSpace& space, const SearchRanking& ranking,
                          const std::vector<SearchEntry>& refined,
                          const std::vector<SearchEntry>& measured, const SearchBudget& budget) {
  const auto chosen = [](const std::vector<SearchEntry>& of) {
    return std::ranges::find(of, false, &SearchEntry::random);
  };
  const auto words = [&](const std::string& name, double db, const char* by) {
    return fmt::format(
        "{} is predicted to be the best of {} configurations of at most {:g} bits: {} dB by {}",
        name, ranking.configurations, budget.bits, db_text(db), by);
  };
  const auto first = chosen(measured);
  if (first == measured.end()) {
    const auto one = chosen(refined);
    if (one != refined.end())
      return words(one->name, one->refined.db, "noise of random phase") + "; it was not measured.";
    const Configured& best = ranking.best.front();
    return words(space.name(best), search_db(best.noise), "the integrals") +
           "; it was not measured.";
  }
  const JudgedFigure& judged = first->record->judged;
  std::string out = words(first->name, first->refined.db, "noise of random phase") +
                    fmt::format(", {} dB measured", db_text(first->measured_db()));
  if (judged.value)
    out += fmt::format(
        "; {}: {}, change {} {}", value_title(*judged.measure),
        figure_text(*judged.measure, judged.value),
        figure_text(*judged.measure, judged.difference, true),
        interval_text(*judged.measure, judged.difference_low, judged.difference_high, true));
  const auto db = [](const SearchEntry& e) {
    return std::isnan(e.measured_db()) ? -HUGE_VAL : e.measured_db();
  };
  const auto most = std::ranges::max_element(measured, {}, db);
  if (most == first)
    return out + fmt::format(". It has the most SQNR of {} measured.", measured.size());
  return out + fmt::format(". Of {} measured {} has the most SQNR, {} dB.", measured.size(),
                           most->name, db_text(most->measured_db()));
}

void judge_search(const std::vector<SearchEntry>& entries, Conclusion& out) {
  Judged noise;
  std::vector<double> linear, refined, measured;
  for (const SearchEntry& e : entries) {
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
  for (const auto& [name, predicted] :
       {std::pair("the integrals", &linear), std::pair("noise of random phase", &refined)}) {
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

std::string write_search_recipe(const std::string& folder, const char* name, const Json& recipe) {
  std::filesystem::create_directories(folder);
  const std::string file = fmt::format("recipe-{}.json", name);
  write_atomically(folder + "/" + file,
                   {policies::Recipe::parse(recipe, "search").json().dump(2), "\n"});
  return file;
}

void say_cheapest(const ExperimentRun& run, const std::vector<SearchEntry>& front,
                  const Cheapest& cheapest, double limit, const LossTuning* tuning,
                  Conclusion& out) {
  const char* const tuned = tuning != nullptr ? "tuned " : "";
  ResultTable table{fmt::format("{}andidates measured for a loss of at most {:g} points, in their "
                                "order",
                                tuning != nullptr ? "Tuned c" : "C", 100 * limit),
                    {"configuration", "bits", "cost/MAC", "test samples", "loss, points",
                     "simultaneous interval", "kept"},
                    {}};
  for (const Tried& tried : cheapest.order) {
    const SearchEntry& entry = front[tried.candidate];
    table.rows.push_back(
        {entry.name, fmt::format("{:.3f}", entry.configured.bits),
         fmt::format("{:.4g}", entry.configured.mac), std::to_string(tried.answers.n),
         fmt::format("{:+.2f}", 100 * tried.mean()),
         fmt::format("[{:+.2f}, {:+.2f}]", 100 * tried.loss.low, 100 * tried.loss.high),
         tried.keeps ? (*tried.keeps ? "yes" : "no") : "undecided"});
    out.charts.front()
        .of(tuning != nullptr ? fmt::format("tuned by {}", tuning->steps) : "as trained")
        .points.push_back({.x = entry.configured.bits,
                           .name = entry.name,
                           .y = 100 * tried.mean(),
                           .low = 100 * tried.loss.low,
                           .high = 100 * tried.loss.high});
  }
  out.tables.push_back(table);
  if (!cheapest.found) {
    const auto least = std::ranges::min_element(cheapest.order, {},
                                                [](const Tried& tried) { return tried.mean(); });
    const std::string nearest =
        least == cheapest.order.end()
            ? ""
            : fmt::format(
                  " The least loss was {:+.2f} [{:+.2f}, {:+.2f}] points, by {} with {:.3f} bits.",
                  100 * least->mean(), 100 * least->loss.low, 100 * least->loss.high,
                  front[least->candidate].name, front[least->candidate].configured.bits);
    std::string next = " More bits (--bits) or --tune light may find one.";
    if (least != cheapest.order.end() && !least->keeps && least->mean() < limit) {
      // The interval narrows as the root of the samples.
      const double wanted = (least->loss.high - least->mean()) / (limit - least->mean());
      next = fmt::format(" About {:.2g} times as many test samples (--images) would decide it;",
                         wanted * wanted) +
             " more bits (--bits) or --tune light may find another one.";
    }
    const std::string none = fmt::format(
        "No {}configuration surely loses at most {:g} points: of {} on the front {} were measured "
        "(95 % for all {} looks together, Bonferroni).{}{}",
        tuning != nullptr ? "tuned, cheaper " : "", 100 * limit, front.size(),
        cheapest.order.size(), cheapest.looks, nearest, tuning == nullptr ? next : "");
    if (tuning == nullptr)
      out.answer = none;
    else
      out.sentences.push_back(none);
    return;
  }
  const Tried& found = cheapest.order[*cheapest.found];
  const SearchEntry& entry = front[found.candidate];
  const std::string file =
      write_search_recipe(run.out, tuning != nullptr ? "cheapest-tuned" : "cheapest", entry.recipe);
  if (!out.answer.empty()) out.sentences.push_back(out.answer);  // before tuning
  out.answer = fmt::format(
      "The cheapest {}configuration that surely loses at most {:g} points is {} with {:.3f} bits: "
      "it loses {:+.2f} [{:+.2f}, {:+.2f}] points on {} test samples (95 % for all {} looks "
      "together, Bonferroni). Its recipe: {} in this folder",
      tuned, 100 * limit, entry.name, entry.configured.bits, 100 * found.mean(),
      100 * found.loss.low, 100 * found.loss.high, found.answers.n, cheapest.looks, file);
  const auto open = [&](const Tried& tried) {
    return !tried.keeps && tried.candidate < found.candidate;
  };
  if (tuning == nullptr && std::ranges::any_of(cheapest.order, open))
    out.sentences.emplace_back(
        "Cheaper ones may lose no more: these test samples leave them undecided. --images takes "
        "more.");
  if (tuning != nullptr)
    out.sentences.push_back(
        fmt::format("The command that writes its weights, DIR being this folder: numemu tune --net "
                    "{} --data {} --recipe DIR/{} --steps '{}' --samples {} --seed {}",
                    run.settings.text("net"), run.settings.text("data"), file, tuning->steps,
                    tuning->samples, run.seed));
}

}  // namespace numemu::experiments
