// Catch2 for all tests, in one place so that it can be precompiled.
#pragma once
#include <catch2/catch.hpp>
