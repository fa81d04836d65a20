// The settings of an experiment: what each takes, their defaults by size, and the values of a run.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  /// A number in [least, most], bounds that depend on more than the setting; throws Error naming
  /// the key.
  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most) const;
  double number(const std::string& key, double least, double most) const;
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

}  // namespace numemu::experiments
