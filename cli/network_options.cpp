#include "cli/network_options.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>

#include "api/machine_memory.hpp"
#include "api/recipes.hpp"
#include "cli/command.hpp"
#include "cli/talk.hpp"
#include "emu/net/run_context.hpp"
#include "emu/net/train/score.hpp"
#include "experiments/engine/recipe_files.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"

namespace numemu::cli {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;

/// A number of bytes, or one with K, M, G or T (powers of 1024).
std::optional<std::int64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 1) return std::nullopt;
  const std::string_view unit(at, static_cast<std::size_t>(end - at));
  if (unit.empty()) return value <= kMost ? std::optional(value) : std::nullopt;
  const std::size_t power = kUnits.find(unit[0]);
  if (power == std::string_view::npos || (unit.size() > 1 && unit.substr(1) != "iB"))
    return std::nullopt;
  const auto shift = static_cast<int>(10 * (power + 1));
  return value <= kMost >> shift ? std::optional(value << shift) : std::nullopt;
}

}  // namespace

api::Context program_context(bool quiet) {
  api::Context context{.folders = {data_folder(), cache_folder()}};
  if (!quiet) context.say = say_line;
  context.warn = say_line;
  context.clock = seconds;
  return context;
}

void add_trained_net(Command& command, std::string& net) {
  command
      .option("--net NAME|FILE", net,
              "A reference network with a shipped checkpoint, a .safetensors or .onnx file, "
              "or NAME=FILE")
      .required();
}

void add_data_set(Command& command, std::string& data) {
  command
      .option("--data SET", data,
              "glyphs, clicks, chain, mnist:DIR, cifar10:DIR, cifar100:DIR, images:DIR, "
              "text:FILE, tokens:FILE or npy:DIR, with options: docs/data.md")
      .required();
}

std::string recipe_path(const std::string& given) {
  return api::recipe_path(given, program_context(true).folders);
}

void add_recipe(Command& command, std::string& file, const std::string& help, bool training) {
  command.option("--recipe NAME|R.json", file,
                 fmt::format("{} (default: float32). Shipped: {}", help,
                             joined(experiments::shipped_recipes(data_folder(), training), ", ")));
  command.before_run([&file] { file = recipe_path(file); });
}

std::string metric_help() {
  return fmt::format(
      "Metrics beside top-1 and loss; the first one judges: {} (default: those of the data set)",
      joined(net::score_names(), ", "));
}

std::shared_ptr<const std::int64_t> add_memory(Command& command) {
  constexpr std::size_t kShown = 40;  // characters of a wrong value
  auto size = std::make_shared<std::optional<std::string>>();
  auto asked = std::make_shared<std::int64_t>(0);
  command
      .option(
          "--memory SIZE", *size,
          "Memory limit for data, networks and their values (default: half of the machine's memory "
          "or of its cgroup limit)")
      .check([](const std::string& text) {
        return parse_size(text) ? std::string()
                                : fmt::format(
                                      "expected bytes, or a number with K, M, G or T up to "
                                      "1024T, not '{}'",
                                      text.substr(0, kShown));
      });
  // The command owns the run that its work is of, from here to its end.
  command.before_run([size, asked, run = std::make_shared<net::RunContext>(),
                      scope = std::shared_ptr<net::RunScope>()]() mutable {
    if (*size) *asked = parse_size(**size).value_or(kMost);
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
  std::vector<std::string> names;
  for (const experiments::GatePreset& preset : experiments::gate_presets())
    names.emplace_back(preset.name);
  // An empty target, of a script whose variable is not set, must not count as no gate.
  command
      .option("--gate TARGET", option.target,
              fmt::format("Exit with 1 if the accuracy misses a target at 99 %: 0.99 (of "
                          "float32's top-1), METRIC>=NUMBER, METRIC>=SHARE*float32 or {}",
                          joined(names, ", ")))
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
