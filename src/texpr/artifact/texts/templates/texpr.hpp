/* What the C++ headers of all artifacts share. C++17; nothing here throws. */
#ifndef TEXPR_HPP
#define TEXPR_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <texpr/texpr.h>
#include <texpr/texpr_checks.h>

namespace texpr {

/* How a call went; true when fine. */
class [[nodiscard]] status {
  public:
    constexpr status(texpr_status code) noexcept : code_(code) {}
    constexpr explicit operator bool() const noexcept { return code_ == TEXPR_OK; }
    constexpr texpr_status code() const noexcept { return code_; }
    char const *what() const noexcept { return texpr_status_string(code_); }

  private:
    texpr_status code_;
};

/* Elements side by side that someone else owns, as C++20's std::span. On a GPU the pointer is the device's. */
template <class T> class span {
  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class Container, class = decltype(static_cast<T *>(static_cast<Container *>(nullptr)->data()))>
    constexpr span(Container &all) noexcept : data_(all.data()), size_(all.size()) {}
    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }

  private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

/* A function that is ready on devices for as long as objects of this type live: the last one to go unloads it. */
template <texpr_status (*Load)(int), texpr_status (*Unload)()> class loaded {
  public:
    explicit loaded(int device = 0) noexcept : status_(Load(device)) { count.fetch_add(1); }
    loaded(loaded const &other) noexcept : status_(other.status_) { count.fetch_add(1); }
    loaded &operator=(loaded const &other) noexcept = default;
    ~loaded() {
        if (count.fetch_sub(1) == 1) static_cast<void>(Unload());
    }
    explicit operator bool() const noexcept { return static_cast<bool>(status_); }
    texpr::status status() const noexcept { return status_; }

  private:
    texpr::status status_;
    inline static std::atomic<int> count{0};
};

namespace detail {
/* Whether `size` elements are enough; sizes that are out of range are left to the call, which refuses them. */
inline bool holds(std::size_t size, int rank, texpr_wide const *shape, texpr_wide const *stride) noexcept {
    return static_cast<texpr_wide>(size) >= texpr_span(rank, shape, stride, 1);
}
} // namespace detail

} // namespace texpr

#endif
