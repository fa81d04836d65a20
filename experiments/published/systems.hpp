// The published systems that run here: their papers, what these claim, and which claim of an
// experiment tests it.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace numemu::experiments {

/// What a paper claims.
struct PublishedClaim {
  std::string_view text;   ///< with the paper's figure where it gives one
  std::string_view place;  ///< where it stands: "abstract", "theorem", "supplement", "repository";
                           ///< "paper": elsewhere in it
  std::string_view experiment = {};  ///< the experiment whose claim `key` tests it
  std::string_view key = {};         ///< empty: not tested here
  std::string_view nearest = {};     ///< of what is not tested: why, and the nearest run
  std::string_view figure = {};      ///< the paper's, with what it was measured on; empty: none
};

struct System {
  std::string_view name, paper;
  std::vector<PublishedClaim> claims;
};

/// In the order of the page: sparsity, quantization, training, many workers.
std::span<const System> published_systems();

/// What the papers have beside that claim of an experiment: "12 x (abstract)"; "" where they give
/// no figure, or the claim is none of theirs.
std::string published_figure(std::string_view experiment, std::string_view key);

}  // namespace numemu::experiments
