#include "api/search.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "formats/error.hpp"

namespace numemu::api {
namespace {

std::string joined_by_commas(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
  return out;
}

/// "resnet20" of a path, "lognormal-1.5" of a law.
std::string file_words(const std::string& subject) {
  const std::filesystem::path path(subject);
  std::string out = std::filesystem::exists(path) ? path.stem().string() : subject;
  for (char& c : out)
    if (c == ':' || c == '/' || c == '=') c = '-';
  return out;
}

}  // namespace

ExperimentRequest experiment_of(const SearchRequest& asked) {
  ExperimentRequest out{.name = "search", .given_by = experiments::GivenBy::option};
  if (asked.net.empty() == asked.dist.empty())
    throw usage_error("search: expected --net NAME or --dist LAW, one of them");
  if (!asked.net.empty() && asked.data.empty())
    throw usage_error("--data: expected a data set beside --net");
  if (!asked.tune.empty() && !asked.max_loss)
    throw usage_error("--tune: expected --max-loss beside it");
  if (!asked.dist.empty()) {
    if (asked.max_loss)
      throw usage_error("--max-loss: expected --net beside it, laws lose nothing");
    const std::pair<const char*, bool> of_networks[] = {{"--data", !asked.data.empty()},
                                                        {"--units", !asked.units.empty()},
                                                        {"--mac-cost", asked.mac.has_value()},
                                                        {"--refine", asked.refine.has_value()},
                                                        {"--measured", asked.measured.has_value()},
                                                        {"--random", asked.random.has_value()},
                                                        {"--images", asked.images.has_value()}};
    for (const auto& [option, given] : of_networks)
      if (given) throw usage_error(fmt::format("{}: expected --net beside it", option));
    for (const std::string& law : asked.dist)
      if (law.empty()) throw usage_error("--dist: expected a law or a file, found nothing");
  }
  const auto set = [&](const char* key, const std::string& value) {
    if (!value.empty()) out.settings.push_back(fmt::format("{}={}", key, value));
  };
  const auto set_number = [&](const char* key, const auto& value) {
    if (value) set(key, fmt::format("{}", *value));
  };
  set("net", asked.net);
  set("data", asked.data);
  set("dist", joined_by_commas(asked.dist));
  set_number("bits", asked.bits);
  set_number("mac_cost", asked.mac);
  set_number("max_loss", asked.max_loss);
  set("tune", asked.tune);
  set("formats", joined_by_commas(asked.formats));
  set("blocks", joined_by_commas(asked.blocks));
  set("scales", joined_by_commas(asked.scales));
  set("rules", joined_by_commas(asked.rules));
  set("units", joined_by_commas(asked.units));
  set_number("refine", asked.refine);
  set_number("measured", asked.measured);
  set_number("random", asked.random);
  set_number("images", asked.images);
  out.out = asked.out;
  if (out.out.empty())
    out.out = fmt::format("out/search-{}{}",
                          file_words(asked.net.empty() ? asked.dist.front() : asked.net),
                          (asked.bits ? fmt::format("-{}", *asked.bits) : "") +
                              (asked.max_loss ? fmt::format("-loss-{}", *asked.max_loss) : ""));
  out.figures = asked.figures;
  out.seed = asked.seed;
  out.existing = asked.existing;
  return out;
}

}  // namespace numemu::api
