// Options of whatever a text "NAME(A,B)" or a JSON object chooses: policies, tuning steps,
// optimizers, objectives. They are declared once, where their values are kept.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/storage/json_reader.hpp"

namespace numemu {

struct CallText;

/// Texts that are valid where a list of them would be long.
struct TextKind {
  std::string_view name;  ///< "format", for help and docs
  /// The canonical text; throws Error saying what was expected.
  std::string (*canonical)(const std::string& text);
};

/// One option: where its value is kept, and which values are valid.
struct Option {
  std::string_view key, help;
  std::variant<double*, std::int64_t*, bool*, std::string*> value;
  double least = 0, most = 0;             ///< of a number
  std::vector<std::string> choices = {};  ///< of a text
  const TextKind* kind = nullptr;         ///< of a text without choices
};

/// Options with their defaults.
class OptionSet {
 public:
  virtual ~OptionSet() = default;
  /// Every option, in the order of the arguments of "NAME(A,B)". Parsing, the canonical form,
  /// messages, help and the tables of the documents all come from this list.
  virtual std::vector<Option> list() { return {}; }
};

/// The usual maker of a row: the defaults.
template <class Options>
std::unique_ptr<OptionSet> make_options() {
  return std::make_unique<Options>();
}

/// Reads a value into the option's place; null leaves it. Throws Error naming the key.
void read_option(const JsonReader& key, const Option&);
Json option_json(const Option&);
std::string option_text(const Option&);

/// Reads the arguments of a call, each VALUE, in the order of the options, or KEY=VALUE. Throws
/// Error that begins with `where` and offers the nearest key.
void read_arguments(const CallText&, const std::vector<Option>&, const std::string& where);
/// "NAME(A,B)" without arguments at the end that are those of `usual`. OptionSet::list() gives
/// places that can be written; here they are only read.
std::string call_text(std::string_view name, OptionSet& given, OptionSet& usual);

}  // namespace numemu
