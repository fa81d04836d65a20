// Other programs, which the standard library cannot start: a solver, a job scheduler, what draws
// figures.
#pragma once
#include <string>
#include <vector>

namespace numemu::experiments {

struct EndedProgram {
  int error = 0;    ///< errno of the start
  int status = 0;   ///< the exit status; 128 + the signal
  std::string out;  ///< what it printed, where that is kept

  bool missing() const;  ///< there is no such program
  bool fine() const { return error == 0 && status == 0; }
  std::string first_line() const { return out.substr(0, out.find('\n')); }
};
enum class ProgramOutput : unsigned char {
  kept,      ///< both streams
  messages,  ///< standard output goes where messages go
};
/// Runs a program of PATH (words[0]) to its end, without input.
EndedProgram run_program(std::vector<std::string> words, ProgramOutput);

/// An empty folder for files of programs, removed with the object.
class WorkFolder {
 public:
  WorkFolder();
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace numemu::experiments
