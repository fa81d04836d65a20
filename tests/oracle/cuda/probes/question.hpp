// The open questions that probes decide, as questions.def lists them.
#pragma once
#include <vector>

namespace numemu::oracle::recording {

struct Question {
  const char* id;
  const char* text;
  const char* rivals;
  const char* source;
};

inline const std::vector<Question>& questions() {
  static const std::vector<Question> kTable = {
#define NUMEMU_GPU_QUESTION(id, text, rivals, source) {id, text, rivals, source},
#include "tests/oracle/cuda/probes/questions.def"
#undef NUMEMU_GPU_QUESTION
  };
  return kTable;
}

}  // namespace numemu::oracle::recording
