// An experiment: one question, its settings by size, and a conclusion with predictions beside
// measurements.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "experiments/engine/experiment_file.hpp"
#include "experiments/engine/judge.hpp"
#include "experiments/engine/row_store.hpp"
#include "experiments/engine/sweep.hpp"
#include "experiments/engine/workbench.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {

/// How long an experiment may take on two cores: 20 seconds, ten minutes, or hours.
enum class Size : std::uint8_t { smoke, standard, full };
/// "smoke", "default", "full". Throws Error with the nearest known name.
Size parse_size(std::string_view);

/// What a setting takes. Settings checks it before an experiment begins.
struct Takes {
  enum class Kind : std::uint8_t { text, whole, real };
  Kind kind = Kind::text;
  bool list = false;           ///< separated by commas outside parentheses, each value once
  double least = 0, most = 0;  ///< of numbers; whole ones lie within 2^53
  /// Throws Error for a value, or an item of a list, that is none.
  void (*check)(const std::string& item) = nullptr;
  bool empty = false;  ///< an empty text is accepted

  constexpr Takes or_nothing() const {
    Takes takes = *this;
    takes.empty = true;
    return takes;
  }
  constexpr Takes checked(void (*by)(const std::string&)) const {
    Takes takes = *this;
    takes.check = by;
    return takes;
  }
};
constexpr Takes whole(double least, double most) {
  return {Takes::Kind::whole, false, least, most};
}
constexpr Takes real(double least, double most) { return {Takes::Kind::real, false, least, most}; }
constexpr Takes wholes(double least, double most) {
  return {Takes::Kind::whole, true, least, most};
}
constexpr Takes reals(double least, double most) { return {Takes::Kind::real, true, least, most}; }
constexpr Takes text_of(void (*check)(const std::string&)) {
  return {Takes::Kind::text, false, 0, 0, check};
}
constexpr Takes list_of(void (*check)(const std::string&) = nullptr) {
  return {Takes::Kind::text, true, 0, 0, check};
}
/// Networks by name or file, "-" where the setting offers none; names of data sets and optimizers.
Takes takes_network();
Takes takes_network_or_none();
Takes takes_networks();
Takes takes_networks_or_none();
Takes takes_data_set();
Takes takes_optimizer();
Takes takes_optimizers();

/// A setting of an experiment (`--set key=value`) and its default for every size.
struct Setting {
  std::string key;
  const char *smoke, *standard, *full;
  std::string doc;
  Takes takes = {};
};

/// The row of `data`: a data set, or one `of` something.
Setting data_setting(const std::string& of = "");

/// Settings in their order, from rows and from lists of rows that experiments share.
struct SettingList : std::vector<Setting> {
  struct Rows {
    std::vector<Setting> rows;
    Rows(std::string key, const char* smoke, const char* standard, const char* full,
         std::string doc, Takes takes = {})
        : rows{{std::move(key), smoke, standard, full, std::move(doc), takes}} {}
    /// The same default for every size.
    Rows(std::string key, const char* all, std::string doc, Takes takes = {})
        : Rows(std::move(key), all, all, all, std::move(doc), takes) {}
    Rows(Setting row) : rows{std::move(row)} {}
    Rows(std::vector<Setting> all) : rows(std::move(all)) {}
  };
  SettingList(std::initializer_list<Rows> all) {
    for (const Rows& one : all) insert(end(), one.rows.begin(), one.rows.end());
  }
};

/// Whether a setting is written `--set key=value` or is an option of the command, `--key value`.
enum class GivenBy { set, option };
/// What messages call a setting: "--set: max_loss", or the option "--max-loss".
std::string setting_name(std::string key, GivenBy);

/// The values of one run, every setting present.
class Settings {
 public:
  /// Throws Error naming the key of a value that its setting does not take.
  Settings(const std::vector<Setting>&, Size, const std::vector<std::string>& overrides,
           GivenBy = GivenBy::set);
  std::string named(const std::string& key) const { return setting_name(key, given_by_); }
  const std::string& text(const std::string& key) const { return values_.at(key); }
  /// A number, or several, of a setting that takes it.
  std::int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  std::vector<double> numbers(const std::string& key) const;
  std::vector<std::int64_t> whole_numbers(const std::string& key) const;
  /// Numbers in [least, most], bounds that depend on more than the setting; throws Error naming
  /// the key.
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most) const;
  double number(const std::string& key, double least, double most) const;
  std::vector<double> numbers(const std::string& key, double least, double most) const;
  std::vector<std::int64_t> whole_numbers(const std::string& key, std::int64_t least,
                                          std::int64_t most) const;
  /// Separated by commas outside parentheses.
  std::vector<std::string> list(const std::string& key) const;
  const std::map<std::string, std::string>& values() const { return values_; }

 private:
  void check(const std::string& key, const Takes&) const;

  std::map<std::string, std::string> values_;
  std::map<std::string, Takes> takes_;
  GivenBy given_by_;
};

/// Throws Error unless it is "channel" or "tensor".
void check_granularity(const std::string&);
/// The row of `granularity`: per channel by default, as the shipped recipes have it.
Setting granularity_setting();
/// "channel" or "tensor". Throws Error naming the setting.
const std::string& weight_granularity(const Settings&);
/// A role of an element format gets that granularity if it is the weight's; a block format keeps
/// its own. False where nothing was set.
bool set_weight_granularity(Json& role, const char* name, const std::string& granularity,
                            const std::string& where);

/// Thrown by a shard of an experiment when its share is stored and that of others is not yet: it
/// cannot conclude.
struct OthersMissing {};

/// The input of an experiment.
struct ExperimentRun {
  Settings settings;
  std::uint64_t seed = 0;
  std::string out;  ///< folder for its rows, which a killed run finds again
  Existing existing = Existing::resume;
  /// Of its trials (trials.hpp) and points; one of several ends with OthersMissing or concludes.
  Shard shard = {};
  Folders folders;
  SweepHooks hooks;
  /// Told before long work without points ("loading ...").
  std::function<void(const std::string&)> say = [](const std::string&) {};
  /// Of a workbench, before its first point, and of integrals.
  OnWork on_bench = {};
  /// Whether run_trials dropped what --fresh drops: once, however often an experiment calls it.
  std::shared_ptr<bool> trials_dropped = std::make_shared<bool>(false);
};

/// The data set that the setting names; says that it is being loaded.
net::Dataset load_data(const ExperimentRun&, const std::string& key = "data");

struct Conclusion {
  /// To the question, in a sentence or two; "" where the claims are the answer. A conclusion that
  /// has one and no findings has no claims.
  std::string answer = {};
  std::vector<std::string> sentences;  ///< what was found, for people
  std::vector<ResultTable> tables;
  std::vector<Finding> findings;
  std::vector<Chart> charts;

  /// Adds findings about a claim; "": each knows its own.
  void add(Finding, const char* claim = "");
  void add(std::vector<Finding>, const char* claim = "");
};

/// What parts conclude, one after the other: functions of the run, or of the run and its data set
/// (the setting `data`, loaded for the first part that takes it), that add to a conclusion.
template <auto... parts>
Conclusion conclude(const ExperimentRun& run) {
  Conclusion conclusion;
  std::optional<net::Dataset> data;
  const auto add = [&]<class Part>(Part part) {
    if constexpr (std::is_invocable_v<Part, const ExperimentRun&, Conclusion&>) {
      part(run, conclusion);
    } else {
      if (!data) data = load_data(run);
      part(run, *data, conclusion);
    }
  };
  (add(parts), ...);
  return conclusion;
}

/// Something that an experiment puts to the test.
struct Claim {
  const char* key;   ///< findings name it
  const char* text;  ///< a sentence
  /// A setting at whose value of size smoke, where that is no other size's, the claim cannot be
  /// seen: its findings get no verdict there. Null: any run sees it.
  const char* needs = nullptr;
};

/// One file in experiments/ defines `const Experiment experiment_<stem>`.
struct Experiment {
  const char* name;
  const char* question;  ///< one line, without a question mark
  const char* source;    ///< what its source claims: a sentence that names it
  std::vector<Claim> claims;
  SettingList settings;
  Conclusion (*run)(const ExperimentRun&);
  /// Throws Error for settings that contradict each other; null: none can.
  void (*check)(const Settings&) = nullptr;
};

/// Of a run at that size. Throws Error for what the settings do not take or what contradicts.
Settings settings_of(const Experiment&, Size, const std::vector<std::string>& overrides,
                     GivenBy = GivenBy::set);

std::vector<const Experiment*> all_experiments();
/// Throws Error with the nearest known name.
const Experiment& find_experiment(std::string_view name);

struct ClaimResult {
  const Claim* claim = nullptr;
  VerdictCounts found = {};  ///< of its findings, self-checks left out
  /// Of those with the claim's verdict the one furthest from its prediction; null without findings.
  const Finding* worst = nullptr;
};

/// One for each claim, in their order. Throws Error for a finding, self-checks apart, that names
/// none of them.
std::vector<ClaimResult> claim_results(const std::vector<Claim>&, const std::vector<Finding>&);

/// Throws Error for a finding that is about no claim. Findings of claims that the run's settings
/// cannot show get no verdict.
ExperimentFile file_of(const Experiment&, const ExperimentRun&, const Conclusion&);

}  // namespace numemu::experiments
