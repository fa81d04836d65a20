#include "cli/network_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "api/machine_memory.hpp"
#include "api/recipes.hpp"
#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "emu/net/run_context.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu::cli {
namespace {

/// "--learning-rate N": as the command's help shows the option.
std::string usage_of(const api::Option& option) {
  std::string text = option.flag;
  if (text.empty()) {
    text = "--" + option.name;
    std::ranges::replace(text, '_', '-');
  }
  return option.value.empty() ? text : text + " " + option.value;
}

void add_option(Command& command, const api::Option& option) {
  const std::string usage = usage_of(option);
  const auto limit = [&](Option shown) {
    if (option.required) shown.required();
    if (option.standard) shown.show_default();
    if (!option.words.empty()) shown.one_of(option.words);
    if (option.most != std::numeric_limits<std::int64_t>::max())
      shown.whole(option.least, option.most);
    if (option.real == api::Option::Real::positive) shown.positive();
    if (option.real == api::Option::Real::non_negative) shown.non_negative();
    if (option.real == api::Option::Real::fraction) shown.fraction();
  };
  if (const auto* const take = std::get_if<api::TakeText>(&option.target)) {
    auto text = std::make_shared<std::optional<std::string>>();
    limit(command.option(usage, *text, option.help));
    command.before_run([text, take = *take] {
      if (*text) take(**text);
    });
  } else if (const auto* const set = std::get_if<api::TakeFlag>(&option.target)) {
    auto given = std::make_shared<bool>(false);
    limit(command.flag(usage, *given, option.help));
    command.before_run([given, set = *set] {
      if (*given) set();
    });
  } else if (bool* const* const flag = std::get_if<bool*>(&option.target)) {
    limit(**flag ? command.flag(usage, **flag, option.help, false)
                 : command.flag(usage, **flag, option.help));
  } else {
    std::visit(
        [&]<class T>(const T& target) {
          if constexpr (std::is_pointer_v<T> && !std::is_same_v<T, bool*>)
            limit(command.option(usage, *target, option.help));
        },
        option.target);
  }
}

}  // namespace

api::Context program_context(bool quiet) {
  api::Context context{.folders = {data_folder(), cache_folder()}};
  if (!quiet) context.say = say_line;
  context.warn = say_line;
  context.clock = seconds;
  return context;
}

std::string recipe_path(const std::string& given) {
  return api::recipe_path(given, program_context(true).folders);
}

void add_options(Command& command, const std::vector<api::Option>& options,
                 const std::vector<std::string>& names, bool training) {
  for (const std::string& name : names) {
    api::Option one = find_named("option", name, options, &api::Option::name);
    if (one.name == "recipe") {
      std::string& file = *std::get<std::string*>(one.target);
      command.before_run([&file] { file = recipe_path(file); });
      if (!one.required)
        one.help = fmt::format("{} (default: float32). Shipped: {}", one.help,
                               joined(experiments::shipped_recipes(data_folder(), training), ", "));
    }
    add_option(command, one);
  }
}

std::shared_ptr<const std::int64_t> add_memory(Command& command) {
  auto asked = std::make_shared<std::int64_t>(0);
  const auto size = add_bytes(
      command, "--memory SIZE",
      "Memory limit for data, networks and their values (default: half of the machine's memory or "
      "of its cgroup limit)");
  // The command owns the run that its work is of, from here to its end.
  command.before_run([size, asked, run = std::make_shared<net::RunContext>(),
                      scope = std::shared_ptr<net::RunScope>()]() mutable {
    if (*size) *asked = **size;
    const std::int64_t half = api::machine_memory() / 2;
    run->memory.set_budget(*size      ? *asked
                           : half > 0 ? half
                                      : net::kNoMemoryBound,
                           api::held_memory);
    scope = std::make_shared<net::RunScope>(*run);
  });
  return asked;
}

std::optional<experiments::Gate> GateOption::gate() const {
  if (!target.empty()) return experiments::parse_gate(target);
  if (strict) throw usage_error("--strict: expected --gate beside it");
  return std::nullopt;
}

void add_gate(Command& command, GateOption& option) {
  // An empty target, of a script whose variable is not set, must not count as no gate.
  command
      .option("--gate TARGET", option.target, api::gate_help())
      .check([](const std::string& text) {
        return text.empty() ? std::string("expected a target, found an empty text") : "";
      });
  command.flag("--strict", option.strict,
               "Exit with 1 also if the gate is undecided, or points are missing");
}

int gate_code(const std::vector<experiments::Row>& rows, bool strict, bool unfinished) {
  for (const experiments::Row& row : rows) {
    if (!row.gate) continue;
    const std::string& verdict = row.gate->verdict;
    if (verdict == "fail" || (strict && verdict == "undecided")) return kMismatch;
  }
  return strict && unfinished ? kMismatch : kFine;
}

}  // namespace numemu::cli
