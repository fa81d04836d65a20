// The file of a chain: "graph/...", "reference/..." and the bytes of the step that runs; position
// and ranges are its numbers.
#include "policies/tune/base/run_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "formats/error.hpp"
#include "formats/storage/json_text.hpp"
#include "formats/storage/safetensors.hpp"

namespace numemu::policies {
namespace {

constexpr std::string_view kStep = "step/";
constexpr std::size_t kMostSteps = 1000;

/// Every tensor of the state by its name in the file.
std::vector<std::pair<std::string, net::Tensor*>> tensors_of(Tuning& tuning) {
  std::vector<std::pair<std::string, net::Tensor*>> tensors;
  for (net::Parameter* parameter : tuning.graph.parameters())
    tensors.emplace_back("graph/" + parameter->name, &parameter->value);
  for (net::Parameter* parameter : tuning.reference.parameters())
    tensors.emplace_back("reference/" + parameter->name, &parameter->value);
  return tensors;
}

net::RunIdentity identity_of(const TuneFile& file, const Tuning& tuning,
                             const std::vector<TuneStepChoice>& steps) {
  net::RunIdentity identity = file.identity;
  identity.emplace_back("steps", tune_steps_text(steps));
  identity.emplace_back("seed", fmt::format("{}", tuning.seed));
  return identity;
}

/// The chain with its state and file.
class Chain {
 public:
  Chain(Tuning& tuning, const std::vector<TuneStepChoice>& steps, const TuneFile& file)
      : tuning_(tuning), steps_(steps), file_(file), identity_(identity_of(file, tuning, steps)) {}

  /// Restores what the file has.
  void read() {
    std::error_code ignored;
    if (file_.path.empty() || file_.fresh || !std::filesystem::exists(file_.path, ignored)) return;
    const net::StateFile stored = net::read_state_file(file_.path);
    const std::string where = file_.path + ": metadata: run";
    const Json numbers_json = parse_guarded(stored.numbers, where);
    const JsonReader numbers(numbers_json, where);
    TunePosition position;
    position.step = static_cast<std::size_t>(numbers.member("step").integer(-1, 0, kMostSteps));
    const bool finished = numbers.member("finished").integer(0, 0, 1) == 1;
    if (const std::string difference = net::difference(stored.identity, identity_);
        !difference.empty()) {
      if (finished) return;
      net::refuse_state(file_.path, difference);
    }
    if (position.step > steps_.size() || finished != position.finished(steps_.size()))
      numbers.member("step").fail("the number of one of the steps");
    position.part = numbers.member("part").integer(-1, 0, std::int64_t{1} << 53);
    const JsonReader summaries = numbers.member("summaries");
    if (!summaries.value().is_array() || summaries.value().size() != position.step)
      summaries.fail("a text for each step that is done");
    for (std::size_t i = 0; i < position.step; ++i)
      position.summaries.push_back(summaries.element(i).text(""));
    FixedRanges ranges = read_ranges(numbers.member("ranges"));
    net::NamedState state;
    for (const net::NamedBytes& bytes : stored.bytes) {
      if (!bytes.name.starts_with(kStep))
        throw Error(fmt::format("{}: tensor {}: expected a name that starts with {}", file_.path,
                                quote_name(bytes.name), kStep));
      state.emplace_back(bytes.name.substr(kStep.size()), bytes.data);
    }
    read_tensors(stored);
    tuning_.ranges = std::move(ranges);
    position_ = std::move(position);
    stored_ = std::move(state);
  }

  void write(const TuneStep* step) const {
    if (file_.path.empty()) return;
    net::StateFile stored;
    stored.identity = identity_;
    const bool finished = position_.finished(steps_.size());
    const Json numbers = {{"step", position_.step},
                          {"part", position_.part},
                          {"finished", finished ? 1 : 0},
                          {"summaries", Json(position_.summaries)},
                          {"ranges", ranges_json(tuning_.ranges)}};
    stored.numbers = numbers.dump();
    for (const auto& [name, tensor] : tensors_of(tuning_))
      stored.tensors.push_back({name, *tensor});
    net::NamedState state;
    if (step != nullptr) step->save_state(state);
    for (auto& [name, bytes] : state)
      stored.bytes.push_back({std::string(kStep) + name, std::move(bytes)});
    net::write_state_file(file_.path, std::move(stored));
  }

  TunePosition run(const TuneHooks& hooks) {
    read();
    if (hooks.on_start) hooks.on_start(position_);
    bool resumed = position_.part > 0;
    while (!position_.finished(steps_.size())) {
      const TuneStepChoice& choice = steps_[position_.step];
      const std::unique_ptr<TuneStep> step = choice.kind->make(*choice.options);
      position_.parts = std::max<std::int64_t>(1, step->begin(tuning_));
      if (std::exchange(resumed, false)) step->load_state(stored_);
      while (position_.part < position_.parts) {
        step->run(tuning_, position_.part, [&](double share) {
          if (hooks.on_work) hooks.on_work(position_, share);
        });
        ++position_.part;
        if (hooks.on_work) hooks.on_work(position_, 0);
        if (position_.part < position_.parts) write(step.get());
      }
      position_.summaries.push_back(step->summary());
      ++position_.step;
      position_.part = 0;
      write(nullptr);
      if (hooks.on_step) hooks.on_step(position_);
    }
    return position_;
  }

 private:
  void read_tensors(const net::StateFile& stored) {
    std::map<std::string, const net::Tensor*> by_name;
    for (const net::NamedTensor& tensor : stored.tensors) by_name[tensor.name] = &tensor.value;
    const auto tensors = tensors_of(tuning_);
    for (const auto& [name, tensor] : tensors) {
      const auto found = by_name.find(name);
      if (found == by_name.end() || found->second->shape != tensor->shape)
        throw Error(
            fmt::format("{}: tensor {}: expected shape {}, found {}", file_.path, quote_name(name),
                        net::to_string(tensor->shape),
                        found == by_name.end() ? "none" : net::to_string(found->second->shape)));
    }
    for (const auto& [name, tensor] : tensors) *tensor = *by_name.at(name);
  }

  Tuning& tuning_;
  const std::vector<TuneStepChoice>& steps_;
  const TuneFile& file_;
  net::RunIdentity identity_;
  TunePosition position_;
  net::NamedState stored_;
};

}  // namespace

TunePosition run_tune_steps(Tuning& tuning, const std::vector<TuneStepChoice>& steps,
                            const TuneFile& file, const TuneHooks& hooks) {
  return Chain(tuning, steps, file).run(hooks);
}

}  // namespace numemu::policies
