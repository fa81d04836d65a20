#include "experiments/engine/network_identity.hpp"

#include "emu/net/model/coded_weights.hpp"
#include "emu/net/model/weights.hpp"
#include "policies/tuning/checkpoint.hpp"

namespace numemu::experiments {
namespace {

constexpr std::size_t kDigits = 16;

}  // namespace

NetworkIdentity identity_of(const TrainedNet& trained) {
  const std::int64_t codes = net::coded_weights_of(trained.path);
  return {.net = trained.graph.name,
          .weights = trained.digest,
          // Of a reference network the name says all.
          .graph = trained.source.substr(0, kDigits),
          .tuned_from = trained.before ? net::digest_of(*trained.before) : "",
          .ranges = policies::digest_of(policies::checkpoint_ranges(trained.path)),
          .weights_as_codes = codes > 0 ? std::to_string(codes) : "",
          .trained = policies::trained_without_before(trained.path) ? "under a recipe" : ""};
}

net::RunIdentity run_identity(const TrainedNet& trained) {
  net::RunIdentity identity;
  const NetworkIdentity of = identity_of(trained);
  NetworkIdentity::fields(of, [&](const char* key, const std::string& value, unsigned) {
    if (!value.empty()) identity.emplace_back(key, value);
  });
  return identity;
}

void identify(Json& point, const TrainedNet& trained) {
  point.update(json_of(identity_of(trained)));
}

}  // namespace numemu::experiments
