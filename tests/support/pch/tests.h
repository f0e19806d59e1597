// What every test includes, compiled once for each directory of tests. (Without "pragma once", which g++ dislikes
// here.)

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
