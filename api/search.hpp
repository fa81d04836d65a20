// The best formats for a network or a law: ranked by integrals, refined, measured.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/studies.hpp"

namespace numemu::api {

/// Members that are not given have the defaults of experiment `search` (docs/search.md).
struct SearchRequest {
  std::string net = {}, data = {};      ///< a network by name or file; or
  std::vector<std::string> dist = {};   ///< laws and .npy files
  std::optional<double> bits = {};      ///< most stored bits of an element, scales included
  std::optional<double> mac = {};       ///< most cost of a multiply-add over float32's
  std::optional<double> max_loss = {};  ///< points of top-1 that the cheapest one may lose
  std::string tune = {};                ///< steps for cheaper ones, as the last step of max_loss
  std::vector<std::string> formats = {}, blocks = {}, scales = {}, rules = {}, units = {};
  std::optional<std::int64_t> refine = {}, measured = {}, random = {}, images = {};
  std::string out = {};      ///< folder; "" is out/search-SUBJECT-BITS-loss-POINTS
  std::string figures = {};  ///< of ReportPaths
  std::int64_t seed = 0;
  Existing existing = Existing::resume;
};

/// What run_experiment() takes. Throws Error where network and laws are both given or both absent,
/// and for options that laws do not have.
ExperimentRequest experiment_of(const SearchRequest&);

}  // namespace numemu::api
