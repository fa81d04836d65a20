// numemu search: thousands of formats and scales ranked for a network or a law, the best measured.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/studies.hpp"
#include "cli/command.hpp"
#include "cli/experiment_run.hpp"
#include "cli/network_options.hpp"
#include "experiments/engine/experiment.hpp"

namespace numemu::cli {
namespace {

/// A setting of the experiment as an option; what it takes is declared there.
struct SettingOption {
  const char *key, *usage, *help;
  bool from_zero = false;  ///< a real number may be 0
};
constexpr SettingOption kSettings[] = {
    {"net", "--net NAME|FILE", "Network to search recipes for"},
    {"data", "--data SET", "Its data set"},
    {"dist", "--dist LAW...", "Laws or .npy files of numbers in place of a network"},
    {"bits", "--bits B",
     "Most stored bits of an element with its scales, of weights and of activations each "
     "(default 4.5; beside --max-loss 9)"},
    {"mac_cost", "--mac-cost C",
     "Most cost of a multiply-add over float32's: bits times bits of the elements, and the "
     "bits of the unit's adders"},
    {"max_loss", "--max-loss POINTS",
     "Find the cheapest configuration that surely loses at most so much top-1", true},
    {"tune", "--tune STEPS",
     "Last step of --max-loss: tune cheaper configurations (docs/tune.md; light)"},
    {"formats", "--formats F...",
     "Element formats, lists and grids as in analyze (default: all of so many bits)"},
    {"blocks", "--blocks N...", "Sizes of blocks (default 8 16 32 64 128)"},
    {"scales", "--scales F...",
     "Scale formats of groups (default float16 float8_e4m3fn float8_e5m2)"},
    {"rules", "--rules NAME...",
     "Scale rules (default absmax pow2(absmax,up) floor ceil even nearest, four-over-six "
     "in groups, and mse of weights)"},
    {"units", "--units U...", "Units of products (default f32.sequential)"},
    {"refine", "--refine N", "Configurations refined by noise of random phase (default 64)"},
    {"measured", "--measured N", "The best of them, measured (default 8)"},
    {"random", "--random N", "Further ones, drawn at random and measured (default 8)"},
    {"images", "--images N", "Test samples (default 2000)"}};

/// What an option was given: one of these.
struct Given {
  std::string text;
  std::vector<std::string> list;
  std::optional<std::int64_t> whole;
  std::optional<double> real;

  std::vector<std::string> items() const {
    if (whole) return {std::to_string(*whole)};
    if (real) return {fmt::format("{}", *real)};
    if (!text.empty()) return {text};
    return list;
  }
};

struct SearchOptions {
  api::SearchRequest asked;
  std::map<std::string, Given> given;
  bool json = false, quiet = false;
};

int run_search(const SearchOptions& options) {
  api::SearchRequest asked = options.asked;
  for (const auto& [key, given] : options.given)
    if (std::vector<std::string> items = given.items(); !items.empty())
      asked.settings.emplace(key, std::move(items));
  return run_and_print(api::experiment_of(asked),
                       {.json = options.json, .quiet = options.quiet, .tables = true});
}

void add_setting(Command& command, const SettingOption& option, const experiments::Takes& takes,
                 Given& given) {
  using Kind = experiments::Takes::Kind;
  if (takes.list) {
    command.option(option.usage, given.list, option.help);
  } else if (takes.kind == Kind::text) {
    command.option(option.usage, given.text, option.help);
  } else if (takes.kind == Kind::whole) {
    command.option(option.usage, given.whole, option.help)
        .whole(static_cast<std::int64_t>(takes.least), static_cast<std::int64_t>(takes.most));
  } else {
    Option real = command.option(option.usage, given.real, option.help);
    option.from_zero ? real.non_negative() : real.positive();
  }
}

}  // namespace

void add_search(Program& program) {
  auto [command, options] = program.command<SearchOptions>("search", run_search);
  const auto& settings = experiments::find_experiment("search").settings;
  for (const SettingOption& option : kSettings)
    add_setting(command, option,
                std::ranges::find(settings, option.key, &experiments::Setting::key)->takes,
                options.given[option.key]);
  api::SearchRequest& asked = options.asked;
  command.option("--seed S", asked.seed, "Seed of what is drawn at random")
      .whole(0, std::int64_t{1} << 53);
  command.option("--out DIR", asked.out,
                 "Folder for rows and report (default out/search-NET-B, -loss-P)");
  command.option("--figures DIR", asked.figures,
                 "Folder for the report's figures as SVG, PDF and CSV and its tables as LaTeX");
  command.flag("--fresh", asked.existing, "Delete existing rows and trials", api::Existing::fresh);
  command.flag("--json", options.json, "Print the conclusion as JSON");
  command.flag("--quiet", options.quiet, "No progress");
  add_threads(command);
  add_memory(command);
}

}  // namespace numemu::cli
