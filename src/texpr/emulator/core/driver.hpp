/* CUDA's driver interface as far as a launcher needs it (CUDA Driver API reference manual). One device; all it does is done
   when a call returns, so streams are names only.

   cuModuleLoadData takes "TEXPR-EMULATED\0" and the path of a shared library, or an empty path for this process itself. */
#ifndef TEXPR_EMULATOR_DRIVER_HPP
#define TEXPR_EMULATOR_DRIVER_HPP

#include <dlfcn.h>

#include <cstddef>

namespace tx_emu {

constexpr int NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, FILE_NOT_FOUND = 301,
              INVALID_HANDLE = 400, NOT_FOUND = 500, TOO_LARGE = 720;

constexpr unsigned MULTIPROCESSORS = 4, BLOCKS_HELD = 2; /* at once, by each */

struct Module {
    void *library = nullptr;
    std::vector<std::unique_ptr<Function>> functions;
};

static bool initialized = false;
static char the_context, the_stream;
static thread_local void *current_context = nullptr;

/* Whether one of the pointers that a caller must give is null: CUDA_ERROR_INVALID_VALUE then, as from CUDA's own driver. */
template <class... T> static bool lacks(const T *...given) { return ((given == nullptr) || ...); }

static int usable() { return !initialized ? NOT_INITIALIZED : !current_context ? INVALID_CONTEXT : DONE; }

static int synchronize() {
    if (int code = usable()) return code;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    settle();
    return DONE;
}

static int copy(void *to, const void *from, std::size_t bytes, const void *device) {
    if (int code = usable()) return code;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    settle();
    if (bytes == 0) return DONE;
    if (lacks(to, from) || !memory.has(device, bytes)) return INVALID_VALUE;
    std::memmove(to, from, bytes);
    if (to == device) memory.mark(to, bytes);
    return DONE;
}

} // namespace tx_emu

TX_API int cuInit(unsigned flags) {
    if (flags != 0) return INVALID_VALUE;
    initialized = true;
    return DONE;
}
TX_API int cuDriverGetVersion(int *version) {
    if (lacks(version)) return INVALID_VALUE;
    *version = 12080;
    return DONE;
}
TX_API int cuGetErrorString(int code, const char **text) {
    if (lacks(text)) return INVALID_VALUE;
    switch (code) {
    case DONE: *text = "no error"; return DONE;
    case INVALID_VALUE: *text = "invalid argument"; return DONE;
    case OUT_OF_MEMORY: *text = "out of memory"; return DONE;
    case NOT_INITIALIZED: *text = "initialization error"; return DONE;
    case INVALID_DEVICE: *text = "invalid device ordinal"; return DONE;
    case INVALID_IMAGE: *text = "the image is not one of the emulator's"; return DONE;
    case INVALID_CONTEXT: *text = "invalid device context"; return DONE;
    case FILE_NOT_FOUND: *text = "file not found"; return DONE;
    case INVALID_HANDLE: *text = "invalid resource handle"; return DONE;
    case NOT_FOUND: *text = "named symbol not found"; return DONE;
    case ILLEGAL_ADDRESS: *text = "the emulator saw an access out of bounds"; return DONE;
    case OUT_OF_RESOURCES: *text = "too many resources requested for launch"; return DONE;
    case LAUNCH_FAILED: *text = "the emulator saw a fault in a kernel"; return DONE;
    default: *text = nullptr; return INVALID_VALUE;
    }
}

/* ---- device and context ------------------------------------------------------------------------------------------------- */

TX_API int cuDeviceGetCount(int *count) {
    if (lacks(count)) return INVALID_VALUE;
    *count = 1;
    return initialized ? DONE : NOT_INITIALIZED;
}
TX_API int cuDeviceGet(int *device, int ordinal) {
    if (!initialized) return NOT_INITIALIZED;
    if (lacks(device)) return INVALID_VALUE;
    *device = 0;
    return ordinal == 0 ? DONE : INVALID_DEVICE;
}
TX_API int cuDeviceGetName(char *name, int length, int device) {
    if (device != 0 || length <= 0 || lacks(name)) return device != 0 ? INVALID_DEVICE : INVALID_VALUE;
    std::snprintf(name, (std::size_t)length, "texpr emulator");
    return DONE;
}
TX_API int cuDeviceTotalMem_v2(std::size_t *bytes, int device) {
    if (lacks(bytes)) return INVALID_VALUE;
    *bytes = (std::size_t)64 << 30;
    return device == 0 ? DONE : INVALID_DEVICE;
}

/* The numbers of CUdevice_attribute in cuda.h; what is not listed is 0. */
TX_API int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (!initialized) return NOT_INITIALIZED;
    if (device != 0) return INVALID_DEVICE;
    if (lacks(value)) return INVALID_VALUE;
    switch (attribute) {
    case 1: case 2: case 3: *value = (int)MOST_THREADS; break; /* MAX_THREADS_PER_BLOCK, MAX_BLOCK_DIM_X, _Y */
    case 4: *value = 64; break;                                /* MAX_BLOCK_DIM_Z */
    case 5: *value = 0x7fffffff; break;                        /* MAX_GRID_DIM_X */
    case 6: case 7: *value = 65535; break;                     /* MAX_GRID_DIM_Y, _Z */
    case 8: *value = 48 << 10; break;                          /* MAX_SHARED_MEMORY_PER_BLOCK */
    case 10: *value = (int)LANES; break;                       /* WARP_SIZE */
    case 12: *value = 65536; break;                            /* MAX_REGISTERS_PER_BLOCK */
    case 16: *value = (int)MULTIPROCESSORS; break;             /* MULTIPROCESSOR_COUNT */
    case 39: *value = 2048; break;                             /* MAX_THREADS_PER_MULTIPROCESSOR */
    case 41: *value = 1; break;                                /* UNIFIED_ADDRESSING */
    case 75: *value = capability / 10; break;                  /* COMPUTE_CAPABILITY_MAJOR */
    case 76: *value = capability % 10; break;                  /* COMPUTE_CAPABILITY_MINOR */
    case 81: *value = 228 << 10; break;                        /* MAX_SHARED_MEMORY_PER_MULTIPROCESSOR */
    case 95: *value = 1; break;                                /* COOPERATIVE_LAUNCH */
    case 97: *value = 227 << 10; break;                        /* MAX_SHARED_MEMORY_PER_BLOCK_OPTIN */
    case 120: *value = capability >= 90; break;                /* CLUSTER_LAUNCH */
    default: *value = 0;
    }
    return DONE;
}

TX_API int cuDevicePrimaryCtxRetain(void **context, int device) {
    if (!initialized) return NOT_INITIALIZED;
    if (lacks(context)) return INVALID_VALUE;
    *context = &the_context;
    return device == 0 ? DONE : INVALID_DEVICE;
}
TX_API int cuDevicePrimaryCtxRelease_v2(int device) { return device == 0 ? DONE : INVALID_DEVICE; }
TX_API int cuCtxGetCurrent(void **context) {
    if (lacks(context)) return INVALID_VALUE;
    *context = current_context;
    return initialized ? DONE : NOT_INITIALIZED;
}
TX_API int cuCtxSetCurrent(void *context) {
    if (!initialized) return NOT_INITIALIZED;
    if (context && context != &the_context) return INVALID_CONTEXT;
    current_context = context;
    return DONE;
}
TX_API int cuCtxGetDevice(int *device) {
    if (lacks(device)) return INVALID_VALUE;
    *device = 0;
    return usable();
}
TX_API int cuCtxSynchronize(void) { return synchronize(); }

/* ---- streams ------------------------------------------------------------------------------------------------------------ */

TX_API int cuStreamCreate(void **stream, unsigned) {
    if (lacks(stream)) return INVALID_VALUE;
    *stream = &the_stream;
    return usable();
}
TX_API int cuStreamDestroy_v2(void *) { return usable(); }
TX_API int cuStreamSynchronize(void *) { return synchronize(); }
TX_API int cuStreamQuery(void *) { return usable(); }

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

TX_API int cuMemAlloc_v2(void **pointer, std::size_t bytes) try {
    if (int code = usable()) return code;
    if (bytes == 0 || lacks(pointer)) return INVALID_VALUE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    *pointer = memory.allocate(bytes);
    if (bytes <= (std::size_t)64 << 20) std::memset(*pointer, 0xff, bytes); /* more would cost real pages */
    return DONE;
} catch (const std::bad_alloc &) {
    return OUT_OF_MEMORY;
}
TX_API int cuMemFree_v2(void *pointer) {
    if (int code = usable()) return code;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return !pointer || memory.remove(pointer) ? DONE : INVALID_VALUE;
}
TX_API int cuMemcpyHtoD_v2(void *device, const void *host, std::size_t bytes) { return copy(device, host, bytes, device); }
TX_API int cuMemcpyDtoH_v2(void *host, const void *device, std::size_t bytes) { return copy(host, device, bytes, device); }
TX_API int cuMemcpyDtoD_v2(void *to, const void *from, std::size_t bytes) {
    {
        std::lock_guard<std::mutex> lock(one_at_a_time);
        if (bytes != 0 && !memory.has(from, bytes)) return INVALID_VALUE;
    }
    return copy(to, from, bytes, to);
}
TX_API int cuMemcpyHtoDAsync_v2(void *device, const void *host, std::size_t bytes, void *) { return cuMemcpyHtoD_v2(device, host, bytes); }
TX_API int cuMemcpyDtoHAsync_v2(void *host, const void *device, std::size_t bytes, void *) { return cuMemcpyDtoH_v2(host, device, bytes); }
TX_API int cuMemcpyDtoDAsync_v2(void *to, const void *from, std::size_t bytes, void *) { return cuMemcpyDtoD_v2(to, from, bytes); }
TX_API int cuMemsetD8_v2(void *device, unsigned char value, std::size_t bytes) {
    if (int code = usable()) return code;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    settle();
    if (bytes == 0) return DONE;
    if (!memory.has(device, bytes)) return INVALID_VALUE;
    std::memset(device, value, bytes);
    memory.mark(device, bytes);
    return DONE;
}
TX_API int cuMemsetD8Async(void *device, unsigned char value, std::size_t bytes, void *) { return cuMemsetD8_v2(device, value, bytes); }

/* ---- modules and launches ----------------------------------------------------------------------------------------------- */

TX_API int cuModuleLoadData(Module **module, const void *image) {
    if (int code = usable()) return code;
    static const char magic[] = "TEXPR-EMULATED";
    auto text = static_cast<const char *>(image);
    if (lacks(module)) return INVALID_VALUE;
    if (!text || std::strncmp(text, magic, sizeof magic) != 0) return INVALID_IMAGE;
    const char *path = text + sizeof magic;
    void *library = dlopen(*path ? path : nullptr, RTLD_NOW | RTLD_LOCAL);
    if (!library) return FILE_NOT_FOUND;
    *module = new Module{library, {}};
    return DONE;
}
TX_API int cuModuleUnload(Module *module) {
    if (int code = usable()) return code;
    if (!module) return INVALID_HANDLE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    forget_sites(); /* they may lie in the library */
    dlclose(module->library);
    delete module;
    return DONE;
}
TX_API int cuModuleGetFunction(Function **function, Module *module, const char *name) {
    if (int code = usable()) return code;
    if (lacks(function, module, name)) return INVALID_VALUE;
    auto kernel = static_cast<const Kernel *>(dlsym(module->library, (std::string(name) + "__emu_kernel").c_str()));
    if (!kernel) return NOT_FOUND;
    if (kernel->abi != ABI || kernel->lanes != LANES) return INVALID_IMAGE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    for (const auto &known : module->functions)
        if (known->kernel == kernel) {
            *function = known.get();
            return DONE;
        }
    module->functions.push_back(std::make_unique<Function>(Function{kernel, {}, 48 << 10}));
    *function = module->functions.back().get();
    return DONE;
}

/* The numbers of CUfunction_attribute in cuda.h; what is not listed is 0. */
TX_API int cuFuncGetAttribute(int *value, int attribute, const Function *function) {
    if (int code = usable()) return code;
    if (!function) return INVALID_HANDLE;
    if (lacks(value)) return INVALID_VALUE;
    *value = attribute == 0 ? (int)MOST_THREADS : attribute == 5 || attribute == 6 ? capability : 0;
    return DONE;
}
TX_API int cuFuncSetAttribute(Function *function, int attribute, int value) {
    if (int code = usable()) return code;
    if (!function) return INVALID_HANDLE;
    if (attribute != 8) return DONE; /* MAX_DYNAMIC_SHARED_SIZE_BYTES */
    if (value < 0 || value > 227 << 10) return INVALID_VALUE;
    function->most_shared = value;
    return DONE;
}

/* ---- tensor maps -------------------------------------------------------------------------------------------------------- */

TX_API int cuTensorMapEncodeTiled(
    void *map, int element, unsigned rank, void *base, const std::uint64_t *sizes, const std::uint64_t *strides, const std::uint32_t *box,
    const std::uint32_t *steps, int interleave, int swizzle, int promotion, int fill
) {
    if (!initialized) return NOT_INITIALIZED;
    Encoding given{map, element, rank, base, sizes, strides, box, steps, interleave, swizzle, promotion, fill};
    std::lock_guard<std::mutex> lock(one_at_a_time);
    refused = broken_rule(given);
    if (!refused.empty()) return INVALID_VALUE;
    encode(given);
    return DONE;
}

TX_API int cuTensorMapEncodeIm2col(
    void *map, int element, unsigned rank, void *base, const std::uint64_t *sizes, const std::uint64_t *strides, const int *lower,
    const int *upper, unsigned channels, unsigned pixels, const std::uint32_t *steps, int interleave, int swizzle, int promotion, int fill
) {
    if (!initialized) return NOT_INITIALIZED;
    const std::uint32_t box[2] = {channels, pixels};
    static const int nowhere[3] = {};
    Encoding given{map, element, rank, base, sizes, strides, box, steps, interleave, swizzle, promotion, fill, lower ? lower : nowhere, upper};
    std::lock_guard<std::mutex> lock(one_at_a_time);
    refused = !lower ? "arrays: none is null" : broken_rule(given);
    if (refused.empty() && interleave != 0) refused = "interleave: not emulated in im2col mode";
    if (!refused.empty()) return INVALID_VALUE;
    encode(given);
    return DONE;
}

TX_API int cuLaunchKernel(
    const Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void *, void **arguments, void **extra
) {
    if (int code = usable()) return code;
    if (!function) return INVALID_HANDLE;
    if (extra || shared > (unsigned)function->most_shared) return INVALID_VALUE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return launch(*function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {1, 1, 1}, shared, arguments);
}

/* All blocks run together, as those of a cluster do, and may meet. */
TX_API int cuLaunchCooperativeKernel(
    const Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
    unsigned block_z, unsigned shared, void *, void **arguments
) {
    if (int code = usable()) return code;
    if (!function) return INVALID_HANDLE;
    if (shared > (unsigned)function->most_shared) return INVALID_VALUE;
    if ((std::uint64_t)grid_x * grid_y * grid_z > MULTIPROCESSORS * BLOCKS_HELD) return TOO_LARGE;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return launch(*function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {grid_x, grid_y, grid_z}, shared, arguments);
}
TX_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const Function *function, int threads, std::size_t) {
    if (int code = usable()) return code;
    if (!function) return INVALID_HANDLE;
    if (lacks(blocks)) return INVALID_VALUE;
    *blocks = (int)BLOCKS_HELD;
    return threads > 0 && threads <= (int)MOST_THREADS ? DONE : INVALID_VALUE;
}

/* CUlaunchConfig and CUlaunchAttribute of cuda.h; attribute 4 is the cluster's shape, 6 lets it overlap the launch before. */
struct LaunchAttribute {
    int id;
    alignas(8) union {
        Dim cluster;
        int allowed;
        char room[64];
    } value;
};
struct LaunchConfig {
    Dim grid, block;
    unsigned shared_bytes;
    void *stream;
    LaunchAttribute *attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "as in cuda.h");

TX_API int cuLaunchKernelEx(const LaunchConfig *config, const Function *function, void **arguments, void **extra) {
    if (int code = usable()) return code;
    if (!function) return INVALID_HANDLE;
    if (lacks(config) || extra || config->shared_bytes > (unsigned)function->most_shared) return INVALID_VALUE;
    if (config->attribute_count > 0 && lacks(config->attributes)) return INVALID_VALUE;
    Dim cluster{1, 1, 1};
    bool dependent = false;
    for (unsigned at = 0; at < config->attribute_count; ++at) {
        if (config->attributes[at].id == 4) cluster = config->attributes[at].value.cluster;
        if (config->attributes[at].id == 6) dependent = config->attributes[at].value.allowed != 0;
    }
    std::lock_guard<std::mutex> lock(one_at_a_time);
    return launch(*function, config->grid, config->block, cluster, config->shared_bytes, arguments, dependent);
}

#endif
