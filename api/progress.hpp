// Progress of long work: api counts, its caller draws.
#pragma once
#include <functional>
#include <string_view>

namespace numemu::api {

/// How much of the work is done, counted in `unit`s ("rows", "bytes"). The first call of long work
/// is with 0; work that takes a moment makes none.
using OnProgress = std::function<void(std::string_view unit, double done, double total)>;

}  // namespace numemu::api
