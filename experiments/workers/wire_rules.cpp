#include "experiments/workers/wire_rules.hpp"

#include <fmt/format.h>

#include <utility>

#include "experiments/adacomp/noise.hpp"
#include "policies/exchange/base/selection.hpp"

namespace numemu::experiments::wire {
namespace {

constexpr double kFloat = 32;

/// What a share comes to, and a place among the elements.
struct Places {
  double share, bits;
};
Places places_of(double share, std::int64_t elements) {
  const auto n = static_cast<std::size_t>(elements);
  return {static_cast<double>(policies::sent_elements(share, n)) / static_cast<double>(n),
          policies::index_bits(n)};
}

}  // namespace

WireRule topk(double share, std::int64_t elements) {
  const Places places = places_of(share, elements);
  return gathered("topk", places.share, places.bits + kFloat);
}

WireRule randomk(double share, std::int64_t elements) {
  return summed("randomk", places_of(share, elements).share * kFloat);
}

WireRule scalecom(double share, std::int64_t elements) {
  const Places places = places_of(share, elements);
  WireRule rule = summed("scalecom", places.share * kFloat);
  rule.once = places.share * places.bits;
  return rule;
}

WireRule adacomp(std::int64_t bin, std::int64_t elements) {
  const double share = experiments::adacomp::steady_state(bin).sent / static_cast<double>(bin),
               code = static_cast<double>(experiments::adacomp::code_bits(bin)),
               place = policies::index_bits(static_cast<std::size_t>(elements));
  WireRule rule = gathered(fmt::format("adacomp, bins of {}", bin), share, place + kFloat);
  rule.bits = [message = share * code, combined = std::move(rule.bits)](std::int64_t workers) {
    return workers == 1 ? message : combined(workers);
  };
  return rule;
}

WireRule birder_flat() {
  WireRule rule = votes("birder, flat");
  rule.topologies = {Topology::ring, Topology::tree, Topology::server, Topology::direct};
  return rule;
}

WireRule birder_nodes() {
  WireRule rule = votes("birder, hierarchical");
  rule.topologies = {Topology::hierarchical};
  rule.inside = kFloat;
  return rule;
}

WireRule sign() {
  return {.name = "sign",
          .bits = [](std::int64_t workers) { return workers == 1 ? 1 : kFloat; },
          .whole = true};
}

WireRule learned(double share, std::int64_t window, std::int64_t elements) {
  const Places places = places_of(share, elements);
  WireRule rule = summed(fmt::format("learned, codes of {}", window),
                         places.share * kFloat / static_cast<double>(window));
  rule.once = places.share * places.bits;
  return rule;
}

}  // namespace numemu::experiments::wire
