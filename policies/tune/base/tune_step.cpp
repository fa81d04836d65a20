// The table of tuning steps, made from the files of policies/tune/, and the text of --steps.
#include "policies/tune/base/tune_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "formats/call_text.hpp"
#include "formats/error.hpp"
#include "formats/joined.hpp"
#include "formats/suggest.hpp"

namespace numemu::policies {

#define NUMEMU_TUNE_STEP(stem) extern const TuneStepKind tune_##stem;
#include "policies/tune/table.inc"
#undef NUMEMU_TUNE_STEP

namespace {

/// Null: the text is no pipeline's name.
const TunePipeline* pipeline_of(std::string_view text) {
  for (const TunePipeline& pipeline : tune_pipelines())
    if (pipeline.name == text) return &pipeline;
  return nullptr;
}

std::string canonical(const TuneStepKind& kind, PolicyOptions& options) {
  const std::unique_ptr<PolicyOptions> defaults = kind.options();
  const std::vector<Option> given = options.list(), usual = defaults->list();
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string text = option_text(given[i]);
    if (text != option_text(usual[i]))
      arguments.push_back(fmt::format("{}={}", given[i].key, text));
  }
  if (arguments.empty()) return std::string(kind.name);
  return fmt::format("{}({})", kind.name, joined(arguments, ","));
}

}  // namespace

const std::vector<const TuneStepKind*>& all_tune_steps() {
  static const std::vector<const TuneStepKind*> kinds = {
#define NUMEMU_TUNE_STEP(stem) &tune_##stem,
#include "policies/tune/table.inc"
#undef NUMEMU_TUNE_STEP
  };
  return kinds;
}

const std::vector<TunePipeline>& tune_pipelines() {
  // The publication's pipelines, whose rates are ours: 4-bit networks need larger ones.
  static const std::vector<TunePipeline> pipelines = {
      {"light", "calibrate(percentile(99.9)),batch_norm",
       "ranges and statistics alone: weights stay, seconds"},
      {"advanced",
       "calibrate(percentile(99.9)),"
       "adaquant(iterations=100,weight_rate=0.0003,activation_rate=0.02),batch_norm,bias",
       "weights, ranges and biases trained: minutes"}};
  return pipelines;
}

const TuneStepKind& find_tune_step(std::string_view name) {
  std::vector<std::string> known;
  for (const TuneStepKind* kind : all_tune_steps()) {
    if (kind->name == name) return *kind;
    known.emplace_back(kind->name);
  }
  for (const TunePipeline& pipeline : tune_pipelines()) known.emplace_back(pipeline.name);
  throw Error(unknown_name("tuning step", name, known));
}

std::vector<TuneStepChoice> parse_tune_steps(const std::string& text, const std::string& where) {
  std::vector<TuneStepChoice> steps;
  // The list is the arguments of a call.
  for (const std::string& one : parse_call("steps(" + text + ")").arguments) {
    const CallText call = parse_call(one);
    if (const TunePipeline* const pipeline = pipeline_of(call.name)) {
      if (!call.arguments.empty())
        throw Error(fmt::format("{}: {}: expected no options, found '{}'", where, call.name,
                                call.arguments[0]));
      for (TuneStepChoice& step : parse_tune_steps(std::string(pipeline->steps), where))
        steps.emplace_back(std::move(step)).pipeline = pipeline->name;
      continue;
    }
    TuneStepChoice step;
    step.kind = at(where, [&] { return &find_tune_step(call.name); });
    step.options = step.kind->options();
    read_arguments(call, step.options->list(), where + ": " + call.name);
    step.text = canonical(*step.kind, *step.options);
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<TuneStepChoice> take_class_steps(std::vector<TuneStepChoice>& steps) {
  // clang 14 takes no subrange of libstdc++ 12: iterators.
  const auto taken =
      std::stable_partition(steps.begin(), steps.end(),
                            [](const TuneStepChoice& step) { return !step.kind->of_classes; });
  std::vector<TuneStepChoice> out(std::make_move_iterator(taken),
                                  std::make_move_iterator(steps.end()));
  steps.erase(taken, steps.end());
  return out;
}

std::vector<std::string> leave_out_class_steps(std::vector<TuneStepChoice>& steps,
                                               const std::string& where) {
  std::vector<std::string> notes;
  for (const TuneStepChoice& step : take_class_steps(steps)) {
    if (step.pipeline.empty())
      throw Error(fmt::format(
          "{}: {}: expected a task of classes, whose probabilities the step compares; the targets "
          "are numbers",
          where, step.kind->name));
    notes.push_back(fmt::format(
        "{} leaves out {}, which compares probabilities of classes: the targets are numbers.",
        step.pipeline, step.kind->name));
  }
  return notes;
}

std::string tune_steps_text(const std::vector<TuneStepChoice>& steps) {
  std::vector<std::string> texts;
  for (const TuneStepChoice& step : steps) texts.push_back(step.text);
  return joined(texts, ",");
}

}  // namespace numemu::policies
