// Keyword arguments as the options of requests (api/options.hpp).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "api/options.hpp"
#include "bindings/python/python.hpp"

namespace numemu::python {

/// Reads a dict of options by name; None is an option that is not given.
class Options {
 public:
  Options(py::dict given, std::string command)
      : given_(std::move(given)), command_(std::move(command)) {}

  /// Sets the members of a request that options name.
  template <class Request>
  void read(Request& request) {
    read(api::options_of(request));
  }
  void read(const std::vector<api::Option>&);
  /// Throws Error for an option that no request has.
  void require_all_read() const;

 private:
  py::dict given_;
  std::string command_;
  std::vector<std::string> names_;
};

/// For signatures and help: of each option of the command its name, what it is where it is not
/// given (None where that depends) its help and its type.
py::list described_options(const std::string& command);

/// A message about options of a command ("--lr: expected ..."), with the names that they have here
/// ("learning_rate: expected ...").
std::string with_names_of_python(std::string_view message);

}  // namespace numemu::python
