// Calls saxpy, z = a x + y, from an artifact: `consumer N [--no-check]`. Exit status 0: every element is right.
#include <texpr/saxpy.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <vector>

#include "memory.hpp"

static int run(std::int64_t n, bool check) {
    texpr::saxpy::loaded const ready(0);
    if (!ready) {
        std::fprintf(stderr, "not loaded: %s\n", ready.status().what());
        return 2;
    }

    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size());
    for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 1024), y[i] = static_cast<float>(i % 7);
    memory<float> at_x(x), at_y(y), at_z(std::vector<float>(x.size(), -1.0f));

    if (texpr::status went = texpr::saxpy::call(nullptr, nullptr, 3.0f, at_x, at_y, at_z, n); !went) {
        std::fprintf(stderr, "saxpy: %s\n", went.what());
        return 2;
    }

    std::vector<float> const z = at_z.read();
    for (std::size_t i = 0; check && i < z.size(); i++)
        if (z[i] != 3.0f * x[i] + y[i]) {
            std::fprintf(stderr, "z[%zu] is %g, not %g\n", i, z[i], 3.0f * x[i] + y[i]);
            return 1;
        }
    std::printf("saxpy of %lld elements is right\n", static_cast<long long>(n));
    return 0;
}

int main(int count, char **arguments) try {
    return run(count > 1 ? std::atoll(arguments[1]) : 1000, count < 3 || std::strcmp(arguments[2], "--no-check") != 0);
} catch (std::exception const &reason) {
    std::fprintf(stderr, "%s\n", reason.what());
    return 2;
}
