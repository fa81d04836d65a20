// Options of several commands: those that name a trained network and a data set.
#pragma once
#include <string>

#include "cli/options.hpp"

namespace numemu::cli {

/// --net: required.
void add_trained_net(Command&, std::string& net);
/// --data: required.
void add_data_set(Command&, std::string& data);

}  // namespace numemu::cli
