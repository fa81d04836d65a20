// What the caller of long work owns: folders, a clock, and whom the work tells how far it is.
#pragma once
#include <functional>
#include <string>

#include "experiments/engine/bench/workbench.hpp"
#include "experiments/engine/work.hpp"

namespace numemu::net {
struct RunContext;
}

namespace numemu::api {

using experiments::Folders, experiments::OnWork, experiments::WorkState;

/// Every function may stay as it is; then nobody is told.
struct Context {
  Folders folders;
  OnWork on_work = {};
  /// A sentence for people while work runs, and one that they must not miss.
  std::function<void(const std::string&)> say = [](const std::string&) {};
  std::function<void(const std::string&)> warn = [](const std::string&) {};
  /// Once, when everything asked for is known to be right and the work begins.
  std::function<void()> on_checked = [] {};
  /// Seconds of any origin, for the times in results.
  std::function<double()> clock = [] { return 0.0; };
  /// Memory budget and profile of the work (emu/net/run_context.hpp); null: those of the thread
  /// that calls.
  net::RunContext* run = nullptr;
};

}  // namespace numemu::api
