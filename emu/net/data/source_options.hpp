// The options of a data set on the command line: KIND:PATH,KEY=VALUE,...
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::net {

/// What follows the colon. An option begins at the start or after a comma with one of the known
/// keys and '='; all else, commas included, is part of the path or of the value before it. Where no
/// file has that name, a piece like an option is taken for a misspelt one.
class SourceOptions {
 public:
  /// `kind` names the set in errors. Throws Error where a key is unknown or given twice or a value
  /// is empty.
  SourceOptions(std::string kind, std::string_view text, std::vector<std::string> keys);

  const std::string& kind() const { return kind_; }
  const std::string& path() const { return path_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  /// The value, or `otherwise`.
  std::string text(const std::string& key, std::string otherwise = "") const;
  /// A whole number from `low` to `high`.
  std::int64_t whole(const std::string& key, std::int64_t otherwise, std::int64_t low,
                     std::int64_t high) const;
  /// Real numbers, separated by '/'; empty where the key is not given.
  std::vector<double> numbers(const std::string& key) const;
  /// One of the choices; the first where the key is not given.
  std::string choice(const std::string& key, const std::vector<std::string>& choices) const;
  [[noreturn]] void fail(const std::string& key, const std::string& expected) const;

 private:
  std::string kind_, path_;
  std::map<std::string, std::string> values_;
};

/// How pixels become numbers: (p / 255 - mean) / deviation of each channel.
struct Normalisation {
  std::vector<double> mean, deviation;
};
/// From the keys normalize (imagenet, cifar, none) or mean and deviation, for that many channels;
/// nothing where none is given.
std::optional<Normalisation> normalisation_of(const SourceOptions&, std::int64_t channels);

}  // namespace numemu::net
