// The table of experiments, made from the files of experiments/, and what they conclude.
#include "experiments/engine/experiment.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "emu/net/data/load_dataset.hpp"
#include "formats/error.hpp"
#include "formats/suggest.hpp"
#include "formats/version.hpp"

namespace numemu::experiments {

#define NUMEMU_EXPERIMENT(stem) extern const Experiment experiment_##stem;
#include "experiments/table.inc"
#undef NUMEMU_EXPERIMENT

namespace {

ClaimRow row_of(const ClaimResult& result) {
  return {.key = result.claim->key,
          .claim = result.claim->text,
          .holds = static_cast<std::int64_t>(result.found.holds),
          .undecided = static_cast<std::int64_t>(result.found.undecided),
          .fails = static_cast<std::int64_t>(result.found.fails),
          .verdict = result.found.verdict(),
          .worst = result.worst == nullptr ? Member<Finding>::null() : *result.worst};
}

}  // namespace

net::Dataset load_data(const ExperimentRun& run, const std::string& key) {
  const std::string& name = run.settings.text(key);
  run.say("loading " + name);
  return net::load_dataset(name, run.folders.cache);
}

Settings settings_of(const Experiment& experiment, Size size,
                     const std::vector<std::string>& overrides, GivenBy given_by) {
  Settings settings(experiment.settings, size, overrides, given_by);
  if (experiment.check != nullptr) experiment.check(settings);
  return settings;
}

std::vector<const Experiment*> all_experiments() {
  return {
#define NUMEMU_EXPERIMENT(stem) &experiment_##stem,
#include "experiments/table.inc"
#undef NUMEMU_EXPERIMENT
  };
}

const Experiment& find_experiment(std::string_view name) {
  std::vector<std::string> known;
  for (const Experiment* experiment : all_experiments()) {
    if (experiment->name == name) return *experiment;
    known.emplace_back(experiment->name);
  }
  throw Error(unknown_name("experiment", name, known));
}

void Conclusion::add(Finding finding, const char* claim) {
  if (finding.claim.empty()) finding.claim = claim;
  findings.push_back(std::move(finding));
}

void Conclusion::add(std::vector<Finding> more, const char* claim) {
  for (Finding& finding : more) add(std::move(finding), claim);
}

std::vector<ClaimResult> claim_results(const std::vector<Claim>& claims,
                                       const std::vector<Finding>& findings) {
  std::vector<ClaimResult> results;
  for (const Claim& claim : claims) results.push_back({.claim = &claim});
  for (const Finding& finding : findings) {
    if (finding.self_check) continue;
    const auto found = std::find_if(results.begin(), results.end(), [&](const ClaimResult& result) {
      return finding.claim == result.claim->key;
    });
    if (found == results.end())
      throw Error("finding '" + finding.what + "': expected a claim of its experiment, found '" +
                  finding.claim + "'");
    found->found.add(finding.verdict);
    if (found->worst == nullptr || worse(finding, *found->worst)) found->worst = &finding;
  }
  return results;
}

namespace {

/// Whether the setting that the claim needs has the value of size smoke.
bool is_unseen(const Experiment& experiment, const Settings& settings, const std::string& key) {
  const auto claim = std::ranges::find_if(
      experiment.claims, [&](const Claim& one) { return key == one.key && one.needs != nullptr; });
  if (claim == experiment.claims.end()) return false;
  return std::ranges::any_of(experiment.settings, [&](const Setting& setting) {
    return std::string_view(setting.key) == claim->needs &&
           std::string_view(setting.smoke) != setting.standard &&
           settings.text(setting.key) == setting.smoke;
  });
}

}  // namespace

ExperimentFile file_of(const Experiment& experiment, const ExperimentRun& run,
                       const Conclusion& concluded) {
  Conclusion conclusion = concluded;
  for (Finding& finding : conclusion.findings)
    if (is_unseen(experiment, run.settings, finding.claim)) finding.verdict = Verdict::none;
  ExperimentFile file;
  file.name = experiment.name;
  file.question = experiment.question;
  file.source = experiment.source;
  file.version = kNumericsVersion;
  file.seed = run.seed;
  file.settings = run.settings.values();
  file.answer = conclusion.answer;
  file.sentences = conclusion.sentences;
  file.tables = conclusion.tables;
  if (conclusion.answer.empty() || !conclusion.findings.empty()) {
    for (const ClaimResult& result : claim_results(experiment.claims, conclusion.findings))
      file.claims.push_back(row_of(result));
  }
  file.findings = std::move(conclusion.findings);
  file.charts = std::move(conclusion.charts);
  return file;
}

}  // namespace numemu::experiments
