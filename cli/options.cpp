// The one file that includes CLI11, whose templates take seconds to compile.
#include "cli/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <utility>

#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu::cli {
namespace {

constexpr std::size_t kShown = 40;  ///< characters of a wrong value

/// `range` names least and most in the message, `help` in the help.
template <class Integer>
CLI::Validator whole_number(Integer least, Integer most, const std::string& range,
                            const std::string& help = "") {
  return {[=](const std::string& text) {
            Integer value = 0;
            const char* end = text.data() + text.size();
            const auto [at, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && at == end && value >= least && value <= most)
              return std::string();
            return fmt::format("expected a whole number from {}, not '{}{}'", range,
                               text.substr(0, kShown), text.size() > kShown ? "..." : "");
          },
          help};
}

/// A finite number that `legal` accepts; CLI11's own ranges let "nan" pass. `help` in the help.
template <class Legal>
CLI::Validator real_number(const char* expected, const char* help, Legal legal) {
  return {[=](const std::string& text) {
            double value = NAN;
            const char* end = text.data() + text.size();
            const auto [at, error] = std::from_chars(text.data(), end, value);
            if (error == std::errc() && at == end && std::isfinite(value) && legal(value))
              return std::string();
            return fmt::format("expected {}, not '{}'", expected, text.substr(0, kShown));
          },
          help};
}

/// One line with the nearest known option; CLI11 lists every unmatched word.
std::string problem_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  if (chosen.empty()) {
    const std::string given = app.remaining().empty() ? "" : app.remaining().front();
    return given.starts_with('-') ? unknown_name("option", given, {"--help", "--version"})
                                  : error.what();
  }
  const CLI::App& command = *chosen.front();
  const std::vector<std::string> rest = command.remaining();
  if (rest.empty()) return command.get_name() + ": " + error.what();
  if (!rest.front().starts_with('-'))
    return fmt::format("{0}: unexpected argument '{1}'; numemu {0} --help lists what is expected",
                       command.get_name(), rest.front());
  std::vector<std::string> known;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  }
  return command.get_name() + ": " + unknown_name("option", rest.front(), known);
}

}  // namespace

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::show_default() {
  option_->capture_default_str();
  return *this;
}

Option Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return suggest([words] { return words; });
}

Option Option::suggest(WordList words) {
  *words_ = std::move(words);
  return *this;
}

Option Option::whole(std::int64_t least, std::int64_t most) {
  option_->check(whole_number(least, most, fmt::format("{} to {}", least, most),
                              fmt::format("INT in [{} - {}]", least, most)));
  return *this;
}

Option Option::positive() {
  option_->check(
      real_number("a number above 0", "POSITIVE", [](double value) { return value > 0; }));
  return *this;
}

Option Option::non_negative() {
  option_->check(
      real_number("a number from 0", "NONNEGATIVE", [](double value) { return value >= 0; }));
  return *this;
}

Option Option::fraction() {
  option_->check(real_number("a number from 0 to 1", "FLOAT in [0 - 1]",
                             [](double value) { return value >= 0 && value <= 1; }));
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> problem) {
  option_->check(std::move(problem));
  return *this;
}

template <class T>
Option Command::option(const std::string& usage, T& value, const std::string& help) {
  const std::size_t blank = usage.find(' ');
  CLI::Option* option = app_.add_option(usage.substr(0, blank), value, help);
  if (blank != std::string::npos) option->type_name(usage.substr(blank + 1));
  Kept& kept = kept_[option] = {option->get_type_name(), {}};
  if constexpr (std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::optional<std::uint64_t>>)
    option->check(whole_number<std::uint64_t>(0, UINT64_MAX, "0 to 2^64-1"));
  // An argument without a name of its own would pass for one that is not there.
  if (option->get_positional()) {
    option->check([what = kept.value](const std::string& text) {
      return text.empty() ? fmt::format("expected {}, found ''", what) : std::string();
    });
  }
  return {option, kept.words};
}

using Text = const std::string&;
template Option Command::option(Text, std::string&, Text);
template Option Command::option(Text, std::vector<std::string>&, Text);
template Option Command::option(Text, std::int64_t&, Text);
template Option Command::option(Text, std::uint64_t&, Text);
template Option Command::option(Text, double&, Text);
template Option Command::option(Text, std::optional<std::string>&, Text);
template Option Command::option(Text, std::optional<std::int64_t>&, Text);
template Option Command::option(Text, std::optional<std::uint64_t>&, Text);
template Option Command::option(Text, std::optional<double>&, Text);
template Option Command::option(Text, std::optional<float>&, Text);

Option Command::flag(const std::string& name, bool& value, const std::string& help) {
  CLI::Option* option = app_.add_flag(name, value, help);
  return {option, kept_[option].words};
}

void Command::before_run(std::function<void()> step) { steps_.push_back(std::move(step)); }

namespace {

/// The options that an option excludes, by name: CLI11 keeps them by address, whose order differs
/// from run to run.
std::vector<std::string> excluded(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const CLI::Option* other : option.get_excludes()) names.push_back(other->get_name());
  std::ranges::sort(names);
  return names;
}

/// The help of CLI11 with excluded options by name.
struct Help : CLI::Formatter {
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    if (option->get_excludes().empty()) return text;
    const std::string label = " " + get_label("Excludes") + ":";
    return text.substr(0, text.rfind(label)) + label + " " + joined(excluded(*option), " ");
  }
};

ShownOption shown_option(const CLI::Option& option, const std::string& value,
                         const WordList& words) {
  ShownOption shown;
  for (const std::string& name : option.get_snames()) shown.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    if (!option.get_positional()) shown.names.push_back("--" + name);
  }
  shown.value = value;
  // CLI11 appends its validators to the kind of value.
  const std::string kind = option.get_type_name();
  if (kind.size() > value.size() && !value.empty()) shown.limits = kind.substr(value.size() + 1);
  shown.standard = option.get_default_str();
  shown.help = option.get_description();
  shown.required = option.get_required();
  shown.excludes = excluded(option);
  shown.words = words;
  return shown;
}

}  // namespace

std::vector<ShownOption> Command::shown() const {
  std::vector<ShownOption> all;
  for (const CLI::Option* option : std::as_const(app_).get_options()) {
    const auto kept = kept_.find(option);
    all.push_back(kept == kept_.end()
                      ? shown_option(*option, "", {})
                      : shown_option(*option, kept->second.value, kept->second.words));
  }
  return all;
}

/// Of the first required option that is not given: the words that it takes, where they are few.
std::string Command::missing_words() const {
  constexpr std::size_t kMost = 12;
  for (const CLI::Option* option : std::as_const(app_).get_options()) {
    const auto kept = kept_.find(option);
    if (!option->get_required() || option->count() > 0 || kept == kept_.end()) continue;
    const std::vector<std::string> words =
        kept->second.words ? kept->second.words() : std::vector<std::string>();
    return words.size() <= kMost ? joined(words, ", ") : std::string();
  }
  return "";
}

Program::Program(const std::string& name, const std::string& help, const std::string& version)
    : app_(std::make_unique<CLI::App>(help, name)) {
  app_->set_version_flag("--version", version);
  app_->formatter(std::make_shared<Help>());
  app_->require_subcommand(1);
}

Program::~Program() = default;

void Program::list(const std::string& name, const std::string& help) {
  app_->add_subcommand(name, help);
  listed_.push_back({name, help});
}

Command& Program::add(const std::string& name, Action action) {
  commands_.emplace_back(new Command(*app_->get_subcommand(name), std::move(action)));
  return *commands_.back();
}

void Program::require_listed(const std::string& name) const {
  std::vector<std::string> names;
  for (const Listed& command : listed_) names.push_back(command.name);
  if (std::ranges::find(names, name) != names.end()) return;
  if (name == "help")
    throw usage_error("unknown command 'help'; did you mean 'numemu --help' or 'COMMAND --help'?");
  throw usage_error(unknown_name("command", name, names));
}

std::vector<ShownOption> Program::options(const std::string& name) const {
  if (name.empty()) {
    std::vector<ShownOption> all;
    for (const CLI::Option* option : std::as_const(*app_).get_options())
      all.push_back(shown_option(*option, "", {}));
    return all;
  }
  require_listed(name);
  const auto own = std::ranges::find_if(
      commands_, [&](const auto& command) { return command->app_.get_name() == name; });
  if (own == commands_.end())
    throw usage_error(fmt::format("command '{}' is of another program", name));
  return (*own)->shown();
}

Action Program::parse(int argc, char** argv) {
  if (argc == 1) {
    return [text = app_->help()] {
      write_talk(text);
      return kBadUsage;
    };
  }
  if (argv[1][0] != '-') require_listed(argv[1]);
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    std::ostringstream text;
    app_->exit(help, text);
    return [text = text.str()] {
      fmt::print("{}", text);
      return kFine;
    };
  } catch (const CLI::ParseError& error) {
    std::string problem = problem_of(*app_, error);
    const bool lacks = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
    for (const auto& command : commands_) {
      if (!lacks || !command->app_.parsed()) continue;
      if (const std::string words = command->missing_words(); !words.empty())
        problem += ": " + words;
    }
    throw usage_error(problem);
  }
  const auto chosen =
      std::ranges::find_if(commands_, [](const auto& c) { return c->app_.parsed(); });
  return [command = chosen->get()] {
    for (const auto& step : command->steps_) step();
    return command->action_();
  };
}

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 50;

/// A number of bytes, or one with K, M, G or T (powers of 1024).
std::optional<std::int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 1) return std::nullopt;
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (unit.empty()) return value <= kMostBytes ? std::optional(value) : std::nullopt;
  const std::size_t power = kUnits.find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "iB"))
    return std::nullopt;
  const auto shift = static_cast<int>(10 * (power + 1));
  return value <= kMostBytes >> shift ? std::optional(value << shift) : std::nullopt;
}

}  // namespace

std::shared_ptr<const std::optional<std::int64_t>> add_bytes(Command& command,
                                                             const std::string& usage,
                                                             const std::string& help) {
  constexpr std::size_t kShown = 40;  // characters of a wrong value
  auto text = std::make_shared<std::optional<std::string>>();
  auto bytes = std::make_shared<std::optional<std::int64_t>>();
  command.option(usage, *text, help).check([](const std::string& given) {
    return parse_size(given) ? std::string()
                             : fmt::format(
                                   "expected bytes, or a number with K, M, G or T up to 1024T, "
                                   "not '{}'",
                                   given.substr(0, kShown));
  });
  command.before_run([text, bytes] {
    if (*text) *bytes = parse_size(**text);
  });
  return bytes;
}

}  // namespace numemu::cli
