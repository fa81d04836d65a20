// Where the shipped recipes and networks lie.
#pragma once
#include <string>

namespace numemu::python {

/// Of the environment (NUMEMU_DATA), else beside the installed package, else in the sources.
std::string data_folder();

}  // namespace numemu::python
