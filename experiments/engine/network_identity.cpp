#include "experiments/engine/network_identity.hpp"

#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/weights.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

net::RunIdentity identity_of(const TrainedNet& trained) {
  net::RunIdentity identity = {{"net", trained.graph.name}, {"weights", trained.digest}};
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) identity.emplace_back(key, value);
  };
  // Of a reference network the name says all.
  add("graph", trained.source.substr(0, kDigits));
  if (trained.before) add("tuned_from", net::digest_of(*trained.before));
  add("ranges", policies::digest_of(policies::checkpoint_ranges(trained.path)));
  if (const std::int64_t codes = net::coded_weights_of(trained.path); codes > 0)
    add("weights_as_codes", std::to_string(codes));
  if (policies::trained_without_before(trained.path)) add("trained", "under a recipe");
  return identity;
}

void identify(Json& point, const TrainedNet& trained) {
  for (const auto& [key, value] : identity_of(trained)) point[key] = value;
}

}  // namespace numemu::experiments
