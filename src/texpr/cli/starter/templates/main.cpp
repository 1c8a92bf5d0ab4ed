// Calls @NAME@, y = a x + b, on a CPU.
#include <texpr/@NAME@.hpp>

#include <cstdio>
#include <vector>

int main() {
    std::vector<float> x(1000), y(x.size());
    for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
    if (texpr::status went = texpr::@NAME@::call(nullptr, nullptr, 2.0f, x, 1.0f, y, static_cast<long>(x.size())); !went) {
        std::fprintf(stderr, "@NAME@: %s\n", went.what());
        return 2;
    }
    for (std::size_t i = 0; i < y.size(); i++)
        if (y[i] != 2.0f * x[i] + 1.0f) {
            std::fprintf(stderr, "y[%zu] is %g\n", i, y[i]);
            return 1;
        }
    std::printf("@NAME@ of %zu elements is right\n", y.size());
    return 0;
}
