// The command line of the check, apart from main so that tests can give it words.
#pragma once
#include <cstdio>
#include <string>
#include <vector>

namespace numemu::oracle::recording::replay {

/// 0: the specification's rules give the recorded results; 1: they do not; 2: bad arguments or
/// input, reported on `errors`.
int replay_command(const std::vector<std::string>& words, std::FILE* out, std::FILE* errors);

}  // namespace numemu::oracle::recording::replay
