// The command line: its commands, their options, and what runs.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace numemu::cli {

/// Runs and returns the exit code.
using Action = std::function<int()>;

/// Words that a value may be, of what there are many or which some library knows.
using WordList = std::function<std::vector<std::string>()>;

/// An option as help, manual and completion show it.
struct ShownOption {
  std::vector<std::string> names;  ///< with their dashes; none: an argument without a name
  std::string value;               ///< "FILE"; empty: a flag
  std::string limits;              ///< "INT in [1 - 4096]"
  std::string standard;            ///< the value where it is not given, if the help tells
  std::string help;
  bool required = false;
  std::vector<std::string> excludes;
  WordList words;  ///< may be empty
};

/// An option of a command. Each function returns the option itself, so that calls chain.
class Option {
 public:
  Option required();
  /// An error beside the other option.
  Option excludes(Option other);
  /// The help shows the value that the variable has now.
  Option show_default();
  Option one_of(const std::vector<std::string>& words);
  /// What completion offers as values; others are legal, too.
  Option suggest(WordList words);
  /// A whole number from `least` to `most` in decimal digits; the help shows both.
  Option whole(std::int64_t least, std::int64_t most);
  /// Real numbers: above 0, from 0, from 0 to 1; the help says which.
  Option positive();
  Option non_negative();
  Option fraction();
  /// `problem` returns "" for a legal text, otherwise what was expected.
  Option check(std::function<std::string(const std::string&)> problem);

 private:
  friend class Command;
  Option(CLI::Option* option, WordList& words) : option_(option), words_(&words) {}
  CLI::Option* option_;
  WordList* words_;
};

/// One command of the program.
class Command {
 public:
  Command(const Command&) = delete;
  /// An option that takes a value. `usage` is what the help prints: "--net NAME|FILE",
  /// "-o,--out FILE", or "folder DIR" for an argument without a name of its own. T is std::string,
  /// std::int64_t, std::uint64_t (in decimal digits) or double, a std::optional of one of these or
  /// of float, which stays empty where the option is absent, or std::vector<std::string>.
  template <class T>
  Option option(const std::string& usage, T& value, const std::string& help);
  /// An option without a value, which sets `value` to true.
  Option flag(const std::string& name, bool& value, const std::string& help);
  /// One that sets it to `to`.
  template <class T>
  Option flag(const std::string& name, T& value, const std::string& help,
              std::type_identity_t<T> to) {
    auto given = std::make_shared<bool>(false);
    before_run([given, &value, to] {
      if (*given) value = to;
    });
    return flag(name, *given, help);
  }
  /// Adds what happens between parsing and the action, in the order of these calls.
  void before_run(std::function<void()> step);

 private:
  friend class Program;
  Command(CLI::App& app, Action action) : app_(app), action_(std::move(action)) {}
  std::vector<ShownOption> shown() const;
  std::string missing_words() const;

  /// What CLI11 does not keep of an option.
  struct Kept {
    std::string value;
    WordList words;
  };
  CLI::App& app_;
  std::map<const CLI::Option*, Kept> kept_;
  std::vector<std::function<void()>> steps_;
  Action action_;
};

/// Adds an option of bytes: a number, or one with K, M, G or T (powers of 1024), up to 1024T. They
/// are there once the command runs; nothing where the option is absent.
std::shared_ptr<const std::optional<std::int64_t>> add_bytes(Command&, const std::string& usage,
                                                             const std::string& help);

class Program {
 public:
  Program(const std::string& name, const std::string& help, const std::string& version);
  ~Program();
  /// Adds a command to the help.
  void list(const std::string& name, const std::string& help);
  /// A listed command and its options, a T that lives as long: run(options) gives the exit code.
  template <class T, class Run>
  std::pair<Command&, T&> command(const std::string& name, Run run) {
    auto options = std::make_shared<T>();
    return {add(name, [options, run] { return run(*options); }), *options};
  }
  /// What the command line chooses: a command, or to print a help text or the version. Throws Error
  /// for a wrong command line, with the nearest name where one is unknown.
  Action parse(int argc, char** argv);

  struct Listed {
    std::string name, help;
  };
  /// All commands, of other programs too.
  const std::vector<Listed>& commands() const { return listed_; }
  /// The options of a command of this program; those of the program itself for "". Throws Error for
  /// other names.
  std::vector<ShownOption> options(const std::string& command) const;

 private:
  Command& add(const std::string& name, Action);
  void require_listed(const std::string& name) const;
  std::unique_ptr<CLI::App> app_;
  std::vector<Listed> listed_;
  std::vector<std::unique_ptr<Command>> commands_;
};

}  // namespace numemu::cli
