/* @NAME@ as operators of PyTorch, on LibTorch's stable ABI, from 2.10 on. Built by texpr. */
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 10) << 48))

#include <cstdint>
#include <mutex>
#include <tuple>
#include <vector>

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include <texpr/@NAME@.h>
#include <texpr/texpr.hpp>

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

[[maybe_unused]] void tx_fine(texpr_status status, char const *what) {
    STD_TORCH_CHECK(status == TEXPR_OK, what, " does not run: ", texpr_status_string(status));
}

[[maybe_unused]] void tx_is(Tensor const &given, int64_t rank, ScalarType type, char const *what) {
    STD_TORCH_CHECK(given.dim() == rank, what, " has rank ", given.dim(), ", not ", rank);
    STD_TORCH_CHECK(given.scalar_type() == type, what, " has another type");
}

[[maybe_unused]] void tx_same(int64_t found, int64_t wanted, char const *what) {
    STD_TORCH_CHECK(found == wanted, what, " has an extent or stride of ", found, ", not ", wanted);
}

[[maybe_unused]] void tx_dense(Tensor const &given, char const *what) {
    STD_TORCH_CHECK(given.is_contiguous(), what, " is changed in place, and is not contiguous");
}

[[maybe_unused]] Tensor tx_empty(Tensor const &like, std::vector<int64_t> const &shape, ScalarType type) {
    return torch::stable::new_empty(like, {shape.data(), shape.size()}, type);
}

constexpr std::int64_t tx_alignment = 256;

[[maybe_unused]] Tensor tx_workspace(Tensor const &like, std::uint64_t bytes) {
    return tx_empty(like, {bytes == 0 ? 0 : static_cast<int64_t>(bytes) + tx_alignment}, ScalarType::Byte);
}

[[maybe_unused]] void *tx_aligned(Tensor const &room) {
    auto const begin = reinterpret_cast<std::uintptr_t>(room.mutable_data_ptr());
    return reinterpret_cast<void *>((begin + tx_alignment - 1) / tx_alignment * tx_alignment);
}

@DEVICE@@BODY@

} // namespace

STABLE_TORCH_LIBRARY(@NAME@, m) {
@DEFINED@
}

STABLE_TORCH_LIBRARY_IMPL(@NAME@, @KEY@, m) {
@GIVEN@
}
