#include "experiments/published/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "experiments/published/systems.hpp"
#include "formats/joined.hpp"
#include "formats/storage/json.hpp"

namespace numemu::experiments {
namespace {

/// The value of a setting; "" where a run has none.
std::string setting_of(const ExperimentFile& file, const char* key) {
  const auto found = file.settings.is_object() ? file.settings.find(key) : file.settings.end();
  return found != file.settings.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Above 0, and small enough to be multiplied.
std::optional<std::int64_t> count_of(const ExperimentFile& file, const char* key) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const std::string text = setting_of(file, key);
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > kMost)
    return std::nullopt;
  return count;
}

bool is_published(const ClaimRow& claim) {
  return claim.claim.find("(published") != claim.claim.npos;
}

}  // namespace

std::string verdict_words(const VerdictCounts& counts) {
  std::string out;
  const auto add = [&out](std::size_t n, const char* one, const char* more) {
    if (n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, n == 1 ? one : more);
  };
  add(counts.holds, "holds", "hold");
  add(counts.undecided, "is undecided", "are undecided");
  add(counts.fails, "fails", "fail");
  return out;
}

std::string run_words(const ExperimentFile& file) {
  constexpr std::pair<const char*, const char*> kNetsOnData[] = {
      {"net", "data"}, {"nets", "data"}, {"tuned_nets", "tuned_data"}, {"text_net", "text_data"}};
  std::vector<std::string> words;
  for (const auto& [net, data] : kNetsOnData) {
    const std::string nets = setting_of(file, net), on = setting_of(file, data);
    if (nets.empty() || nets == "-") continue;
    const std::string here = on.empty() ? nets : nets + " on " + on;
    if (std::ranges::find(words, here) == words.end()) words.push_back(here);
  }
  if (const std::string seeds = setting_of(file, "seeds"); !seeds.empty())
    words.push_back("seeds: " + seeds);
  const auto samples = count_of(file, "train_samples"), batch = count_of(file, "batch"),
             epochs = count_of(file, "epochs");
  if (samples && batch && epochs)
    words.push_back(fmt::format("steps: {}", (*samples + *batch - 1) / *batch * *epochs));
  else if (epochs && setting_of(file, "trained").empty())  // else of further networks
    words.push_back(fmt::format("epochs: {}", *epochs));
  return joined(words, "; ");
}

std::string answer_of(const ExperimentFile& file) {
  if (!file.answer.empty()) return file.answer;
  const bool any = std::ranges::any_of(file.claims, is_published);
  VerdictCounts counts;
  std::size_t claims = 0;
  for (const ClaimRow& claim : file.claims) {
    if (any && !is_published(claim)) continue;
    counts.add(claim.judged());
    ++claims;
  }
  if (claims == 0) return "";
  const std::string words = run_words(file), verdicts = verdict_words(counts);
  const std::size_t untested = claims - counts.compared();
  std::string out = fmt::format("Of {} {}claim{} {}", claims, any ? "published " : "",
                                claims == 1 ? "" : "s", verdicts);
  if (untested > 0)
    out += fmt::format("{}{} not tested", verdicts.empty() ? "" : ", ",
                       fmt::format("{} {}", untested, untested == 1 ? "is" : "are"));
  return out + (words.empty() ? "" : " (" + words + ")") + ".";
}

std::vector<std::string> published_figures(const ExperimentFile& file) {
  std::vector<std::string> figures;
  for (const ClaimRow& claim : file.claims)
    figures.push_back(published_figure(file.name, claim.key));
  if (std::ranges::all_of(figures, &std::string::empty)) figures.clear();
  return figures;
}

}  // namespace numemu::experiments
