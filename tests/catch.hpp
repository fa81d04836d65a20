// The one place that includes Catch2, so that it can be precompiled.
#pragma once
#include <catch2/catch.hpp>
