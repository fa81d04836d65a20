// Lists of names with braces for alternatives, and all formats of some bits.
#pragma once
#include <string>
#include <vector>

namespace numemu::api {

/// The texts that a list with braces means, in order: "e{2,3}m1,nf4" is e2m1, e3m1, nf4. Throws
/// Error for braces that do not match and for more than 100000 texts.
std::vector<std::string> expanded_list(const std::string&);
/// Those of several lists.
std::vector<std::string> expanded_lists(const std::vector<std::string>&);

/// expanded_lists() of names of formats, where "all:B" is every described scalar format of 3 to B
/// bits, each encoding once. Throws Error naming --format unless B is 3 to 8.
std::vector<std::string> format_list(const std::vector<std::string>&,
                                     const std::string& option = "--format");

}  // namespace numemu::api
