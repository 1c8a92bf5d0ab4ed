// Arrays where the artifact wants them: in the host's memory, or in a GPU's, through the driver. A real program has its own.
#pragma once

#include <texpr/saxpy.h>

#include <cstddef>
#include <vector>

#if defined(TEXPR_SAXPY_ON_CPU)

template <class T> class memory {
  public:
    explicit memory(std::vector<T> values) : values_(std::move(values)) {}
    T *data() { return values_.data(); }
    std::size_t size() const { return values_.size(); }
    std::vector<T> read() const { return values_; }

  private:
    std::vector<T> values_;
};

#else

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#ifndef TEXPR_DRIVER_LIBRARY // the emulator's, where CMake was told to emulate
#define TEXPR_DRIVER_LIBRARY "libcuda.so.1"
#endif

// Call a function of the driver by name.
template <class... Args> void driver(char const *name, Args... args) {
    static void *library = dlopen(TEXPR_DRIVER_LIBRARY, RTLD_NOW);
    void *found = library ? dlsym(library, name) : nullptr;
    if (!found) throw std::runtime_error(std::string("no CUDA driver, or it has no ") + name);
    if (int code = reinterpret_cast<int (*)(Args...)>(found)(args...))
        throw std::runtime_error(std::string(name) + " fails with " + std::to_string(code));
}

template <class T> class memory {
  public:
    explicit memory(std::vector<T> const &values) : size_(values.size()) {
        if (size_ == 0) return;
        driver("cuMemAlloc_v2", &address_, size_ * sizeof(T));
        driver("cuMemcpyHtoD_v2", address_, static_cast<void const *>(values.data()), size_ * sizeof(T));
    }
    memory(memory const &) = delete;
    ~memory() {
        if (size_ != 0) driver("cuMemFree_v2", address_);
    }
    T *data() { return reinterpret_cast<T *>(address_); }
    std::size_t size() const { return size_; }
    std::vector<T> read() const {
        std::vector<T> values(size_);
        driver("cuCtxSynchronize");
        if (size_ != 0) driver("cuMemcpyDtoH_v2", static_cast<void *>(values.data()), address_, size_ * sizeof(T));
        return values;
    }

  private:
    unsigned long long address_ = 0;
    std::size_t size_ = 0;
};

#endif
