// The options of requests, declared once: the command line and bindings read them, and show them.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace numemu::api {

struct OpenRequest;
struct EvaluateRequest;
struct InferRequest;
struct TrainRequest;
struct TuneRequest;
struct SweepRequest;
struct ExperimentRequest;

/// Takes the text of a value that is no plain one ("shift=2,flip"); throws Error for another.
using TakeText = std::function<void(const std::string&)>;
/// What an option without a value does, where it sets no bool.
using TakeFlag = std::function<void()>;
/// Where the value of an option goes: a member of a request.
using OptionTarget =
    std::variant<std::string*, bool*, std::int64_t*, double*, std::optional<std::string>*,
                 std::optional<std::int64_t>*, std::optional<double>*, std::vector<std::string>*,
                 TakeText, TakeFlag>;

struct Option {
  /// Which real numbers it takes: all, above 0, from 0, from 0 to 1.
  enum class Real : std::uint8_t { any, positive, non_negative, fraction };

  /// "learning_rate", or "batch N" where the help of the command calls the value N.
  Option(const std::string& text, OptionTarget to, std::string what)
      : name(text.substr(0, text.find(' '))), target(std::move(to)), help(std::move(what)) {
    if (name.size() < text.size()) value = text.substr(name.size() + 1);
  }

  std::string name;  ///< as in the request: "learning_rate"
  OptionTarget target;
  std::string help;
  std::string value = {};  ///< what the help of the command calls it: "NAME|FILE"
  /// The command's name for it; "": "--learning-rate".
  std::string flag = {};
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  Real real = Real::any;
  std::vector<std::string> words = {};  ///< all that it may be; none: any
  bool required = false;
  bool standard = false;  ///< the help of the command shows what it is where it is not given
  bool json = false;      ///< the text of JSON, too
  bool files = false;     ///< about files of arrays, which a caller with arrays does not have

  Option& called(std::string by_the_command) { return set(flag, std::move(by_the_command)); }
  Option& from(std::int64_t lowest, std::int64_t highest) {
    least = lowest;
    return set(most, highest);
  }
  Option& positive() { return set(real, Real::positive); }
  Option& not_negative() { return set(real, Real::non_negative); }
  Option& fraction() { return set(real, Real::fraction); }
  Option& one_of(std::vector<std::string> all) { return set(words, std::move(all)); }
  Option& needed() { return set(required, true); }
  Option& shown() { return set(standard, true); }
  Option& or_json() { return set(json, true); }
  Option& about_files() { return set(files, true); }

 private:
  template <class T>
  Option& set(T& member, T to) {
    member = std::move(to);
    return *this;
  }
};

/// What a gate is, for the help of the options that take one.
std::string gate_help();

/// In the order of the help. The request outlives them.
std::vector<Option> options_of(OpenRequest&);
std::vector<Option> options_of(EvaluateRequest&);
std::vector<Option> options_of(InferRequest&);
std::vector<Option> options_of(TrainRequest&);
std::vector<Option> options_of(TuneRequest&);
std::vector<Option> options_of(SweepRequest&);
std::vector<Option> options_of(ExperimentRequest&);

}  // namespace numemu::api
