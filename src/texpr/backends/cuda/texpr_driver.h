/* What a launcher needs of the CUDA driver, found at run time: no CUDA header, no CUDA library at build time.

   A launcher defines TEXPR_KERNELS (how many kernels its module has at most) and includes this once; all is static, so that
   launchers of several functions, or of several artifacts, live in one program. Types and constants are those of the CUDA
   driver API's cuda.h, whose ABI is fixed.

   A module is loaded once for each context, by `tx_load_module`. A launch only reads the table of what is loaded, without
   a lock. An entry belongs to a launcher from the moment its `context` is published until `tx_unload_modules`. */
#ifndef TEXPR_DRIVER_H
#define TEXPR_DRIVER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <texpr/texpr.h>

#include "texpr_validate.h"

#ifndef TEXPR_DRIVER_LIBRARY
#define TEXPR_DRIVER_LIBRARY "libcuda.so.1"
#endif

#ifndef TEXPR_CONTEXTS
#define TEXPR_CONTEXTS 64 /* contexts in which one function may be loaded at a time */
#endif

#define TEXPR_TRY(CALL) \
    do { \
        texpr_status tx_tried = (CALL); \
        if (tx_tried != TEXPR_OK) return tx_tried; \
    } while (0)

typedef struct tx_context *tx_context;   /* CUcontext */
typedef struct tx_module *tx_module;     /* CUmodule */
typedef struct tx_function *tx_function; /* CUfunction */
typedef unsigned long long tx_address;      /* CUdeviceptr */

struct tx_tensor_map { /* CUtensorMap */
    _Alignas(64) unsigned char bytes[128];
};

struct tx_attribute { /* CUlaunchAttribute */
    int id;
    union {
        unsigned cluster[3];
        int allowed;
        _Alignas(8) char room[64];
    } value;
};

struct tx_config { /* CUlaunchConfig */
    unsigned grid[3], block[3], shared;
    texpr_stream stream;
    struct tx_attribute *attributes;
    unsigned count;
};

_Static_assert(sizeof(struct tx_attribute) == 72 && sizeof(struct tx_config) == 56, "as in cuda.h");

enum {
    TEXPR_CLUSTER_DIMENSION = 4, /* CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION */
    TEXPR_DEPENDENT = 6,         /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */
    TEXPR_MULTIPROCESSORS = 16,  /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    TEXPR_COOPERATIVE = 95,      /* CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH */
    TEXPR_MAX_GRID_X = 5,        /* CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X; Y and Z follow */
    TEXPR_CAPABILITY_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    TEXPR_CAPABILITY_MINOR = 76, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR */
    TEXPR_MOST_SHARED = 8        /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
};

/* ---- the driver's functions ---------------------------------------------------------------------------------------------- */

#define TEXPR_DRIVER_FUNCTIONS(F) \
    F(Init, cuInit, (unsigned flags)) \
    F(DeviceGet, cuDeviceGet, (int *device, int ordinal)) \
    F(DeviceGetAttribute, cuDeviceGetAttribute, (int *value, int attribute, int device)) \
    F(PrimaryRetain, cuDevicePrimaryCtxRetain, (tx_context * context, int device)) \
    F(CtxGetCurrent, cuCtxGetCurrent, (tx_context * context)) \
    F(CtxSetCurrent, cuCtxSetCurrent, (tx_context context)) \
    F(ModuleLoadData, cuModuleLoadData, (tx_module * module, void const *image)) \
    F(ModuleUnload, cuModuleUnload, (tx_module module)) \
    F(ModuleGetFunction, cuModuleGetFunction, (tx_function * function, tx_module module, char const *name)) \
    F(LaunchKernel, cuLaunchKernel, \
      (tx_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
       texpr_stream stream, void **arguments, void **extra)) \
    F(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *to, tx_address from, size_t bytes, texpr_stream stream)) \
    F(StreamSynchronize, cuStreamSynchronize, (texpr_stream stream))

/* Without these a launcher still works: with user-made contexts only the device's primary one is known, and is never released;
   kernels have no more shared memory than they declare, no clusters, and copy no tiles; each step of a loop is its own launch, and
   begins when the one before has ended. */
#define TEXPR_OPTIONAL_FUNCTIONS(F) \
    F(CtxGetDevice, cuCtxGetDevice, (int *device)) \
    F(PrimaryRelease, cuDevicePrimaryCtxRelease_v2, (int device)) \
    F(FuncSetAttribute, cuFuncSetAttribute, (tx_function function, int attribute, int value)) \
    F(LaunchKernelEx, cuLaunchKernelEx, \
      (struct tx_config const *config, tx_function function, void **arguments, void **extra)) \
    F(LaunchTogether, cuLaunchCooperativeKernel, \
      (tx_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
       texpr_stream stream, void **arguments)) \
    F(BlocksHeld, cuOccupancyMaxActiveBlocksPerMultiprocessor, \
      (int *blocks, tx_function function, int threads, size_t shared)) \
    F(MemsetD8Async, cuMemsetD8Async, (tx_address at, unsigned char value, size_t bytes, texpr_stream stream)) \
    F(TensorMapEncodeIm2col, cuTensorMapEncodeIm2col, \
      (struct tx_tensor_map * map, int element, unsigned rank, void *base, uint64_t const *sizes, uint64_t const *strides, \
       int const *lower, int const *upper, unsigned channels, unsigned pixels, uint32_t const *steps, int interleave, int swizzle, \
       int promotion, int fill)) \
    F(TensorMapEncodeTiled, cuTensorMapEncodeTiled, \
      (struct tx_tensor_map * map, int element, unsigned rank, void *base, uint64_t const *sizes, uint64_t const *strides, \
       unsigned const *box, unsigned const *steps, int interleave, int swizzle, int promotion, int fill))

#define TEXPR_MEMBER(MEMBER, SYMBOL, PARAMETERS) int(*MEMBER) PARAMETERS;
static struct {
    TEXPR_DRIVER_FUNCTIONS(TEXPR_MEMBER)
    TEXPR_OPTIONAL_FUNCTIONS(TEXPR_MEMBER)
} tx_driver;
#undef TEXPR_MEMBER

static texpr_status tx_driver_status;
static pthread_once_t tx_driver_once = PTHREAD_ONCE_INIT;

static void tx_find_driver(void) {
    void *library = dlopen(TEXPR_DRIVER_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    tx_driver_status = TEXPR_NO_DRIVER;
    if (library == NULL) return;
    /* POSIX promises that an object pointer from dlsym holds a function; C has no cast for that. */
#define TEXPR_FIND(MEMBER, SYMBOL, PARAMETERS) \
    { \
        void *found = dlsym(library, #SYMBOL); \
        memcpy(&tx_driver.MEMBER, &found, sizeof found); \
    }
#define TEXPR_REQUIRE(MEMBER, SYMBOL, PARAMETERS) \
    TEXPR_FIND(MEMBER, SYMBOL, PARAMETERS) \
    if (tx_driver.MEMBER == NULL) return;
    TEXPR_DRIVER_FUNCTIONS(TEXPR_REQUIRE)
    TEXPR_OPTIONAL_FUNCTIONS(TEXPR_FIND)
#undef TEXPR_REQUIRE
#undef TEXPR_FIND
    tx_driver_status = tx_driver.Init(0);
}

/* The driver, found once; every later call only reads. */
static texpr_status tx_need_driver(void) {
    pthread_once(&tx_driver_once, tx_find_driver);
    return tx_driver_status;
}

/* ---- images -------------------------------------------------------------------------------------------------------------- */

/* Code for one target. `exact`: for this capability alone (`sm_90a`). `portable`: PTX, for every later device too. `variant`: which
   of the launcher's sequences of launches belongs to it. `kernels`: names, in the order in which launches count them; `shared`:
   bytes of shared memory that launches of each ask for; `together`: threads of a block of those whose blocks all meet, else 0. */
struct tx_image {
    int major, minor, exact, portable, variant;
    unsigned char const *code;
    char const *const *kernels;
    int const *shared, *together;
    int count;
};

/* How well an image suits a device; 0: not at all. Made for just this device before any other, PTX last. */
static int tx_suits(struct tx_image const *image, int major, int minor) {
    int same = image->major == major && image->minor == minor;
    if (image->exact) return same ? 3000 : 0;
    if (image->portable) {
        int older = image->major < major || (image->major == major && image->minor <= minor);
        return older ? 1 + image->major * 10 + image->minor : 0;
    }
    return image->major == major && image->minor <= minor ? 2000 + image->minor : 0;
}

static texpr_status tx_choose(struct tx_image const *images, int count, int ordinal, int *device, int *chosen) {
    int major = 0, minor = 0, best = 0;
    TEXPR_TRY(tx_need_driver());
    TEXPR_TRY(tx_driver.DeviceGet(device, ordinal));
    TEXPR_TRY(tx_driver.DeviceGetAttribute(&major, TEXPR_CAPABILITY_MAJOR, *device));
    TEXPR_TRY(tx_driver.DeviceGetAttribute(&minor, TEXPR_CAPABILITY_MINOR, *device));
    for (int i = 0; i < count; i++) {
        int suits = tx_suits(&images[i], major, minor);
        if (suits > best) best = suits, *chosen = i;
    }
    return best > 0 ? TEXPR_OK : TEXPR_UNSUPPORTED_DEVICE;
}

#if defined(TEXPR_EMULATE)
/* The emulator's driver takes, in place of code, the path of the library that holds the kernels: this one. */
static unsigned char const *tx_image_code(struct tx_image const *image) {
    static char const magic[] = "TEXPR-EMULATED";
    static char text[sizeof magic + 4096];
    Dl_info own;
    (void)image;
    memcpy(text, magic, sizeof magic);
    if (dladdr((void *)text, &own) != 0 && own.dli_fname != NULL && strlen(own.dli_fname) < 4096)
        strcpy(text + sizeof magic, own.dli_fname);
    return (unsigned char const *)text;
}
#else
static unsigned char const *tx_image_code(struct tx_image const *image) { return image->code; }
#endif

/* ---- what is loaded, by context ------------------------------------------------------------------------------------------ */

struct tx_loaded {
    _Atomic(tx_context) context; /* NULL: free. Written last, so that who sees it sees the rest. */
    tx_module module;
    int device;
    int retained; /* the primary context is held for this entry */
    int variant;
    int64_t grid[3]; /* the most blocks that a launch may have along x, y, z */
    tx_function kernels[TEXPR_KERNELS];
    int64_t held[TEXPR_KERNELS]; /* the most blocks that can meet, 0 where none can */
};

static struct tx_loaded tx_table[TEXPR_CONTEXTS];
static pthread_mutex_t tx_table_lock = PTHREAD_MUTEX_INITIALIZER;

static struct tx_loaded *tx_entry(tx_context context) {
    for (int i = 0; i < TEXPR_CONTEXTS; i++)
        if (atomic_load_explicit(&tx_table[i].context, memory_order_acquire) == context) return &tx_table[i];
    return NULL;
}

/* What is loaded in the calling thread's context. */
static texpr_status tx_loaded_here(struct tx_loaded **loaded) {
    tx_context context = NULL;
    TEXPR_TRY(tx_need_driver());
    TEXPR_TRY(tx_driver.CtxGetCurrent(&context));
    *loaded = context == NULL ? NULL : tx_entry(context);
    return *loaded == NULL ? TEXPR_NOT_LOADED : TEXPR_OK;
}

/* Let launches of a kernel ask for so much shared memory. */
static texpr_status tx_allow_shared(tx_function kernel, int bytes) {
    return tx_driver.FuncSetAttribute == NULL ? TEXPR_NO_DRIVER : tx_driver.FuncSetAttribute(kernel, TEXPR_MOST_SHARED, bytes);
}

/* How many blocks of a kernel the device holds at once, with nothing else on it. 0: they cannot meet, each step is a launch. */
static int64_t tx_blocks_held(int device, tx_function kernel, int threads, int shared) {
    int can = 0, units = 0, each = 0;
    if (tx_driver.LaunchTogether == NULL || tx_driver.BlocksHeld == NULL || tx_driver.MemsetD8Async == NULL) return 0;
    if (tx_driver.DeviceGetAttribute(&can, TEXPR_COOPERATIVE, device) != TEXPR_OK || can == 0) return 0;
    if (tx_driver.DeviceGetAttribute(&units, TEXPR_MULTIPROCESSORS, device) != TEXPR_OK) return 0;
    return tx_driver.BlocksHeld(&each, kernel, threads, (size_t)shared) == TEXPR_OK ? (int64_t)units * each : 0;
}

/* Fill a free entry: limits of the device, the module, its kernels. The context is current. */
static texpr_status tx_fill(struct tx_loaded *entry, struct tx_image const *image) {
    texpr_status status = TEXPR_OK;
    for (int axis = 0; axis < 3; axis++) {
        int most = 0;
        TEXPR_TRY(tx_driver.DeviceGetAttribute(&most, TEXPR_MAX_GRID_X + axis, entry->device));
        entry->grid[axis] = most;
    }
    TEXPR_TRY(tx_driver.ModuleLoadData(&entry->module, tx_image_code(image)));
    for (int i = 0; i < image->count && status == TEXPR_OK; i++) {
        status = tx_driver.ModuleGetFunction(&entry->kernels[i], entry->module, image->kernels[i]);
        if (status == TEXPR_OK && image->shared[i] > 0) status = tx_allow_shared(entry->kernels[i], image->shared[i]);
        entry->held[i] = 0;
        if (status == TEXPR_OK && image->together[i] > 0)
            entry->held[i] = tx_blocks_held(entry->device, entry->kernels[i], image->together[i], image->shared[i]);
    }
    if (status != TEXPR_OK) tx_driver.ModuleUnload(entry->module);
    entry->variant = image->variant;
    return status;
}

/* The context to load into: the current one if a user made it on the device, else the device's primary one. That is held for
   as long as the module is loaded, whoever else lets go of it. */
static texpr_status tx_context_for(int device, tx_context before, tx_context *context, int *retained) {
    int current = -1;
    *retained = 0;
    TEXPR_TRY(tx_driver.PrimaryRetain(context, device));
    *retained = 1;
    if (before == NULL || before == *context || tx_driver.CtxGetDevice == NULL) return tx_driver.CtxSetCurrent(*context);
    if (tx_driver.CtxGetDevice(&current) != TEXPR_OK || current != device) return tx_driver.CtxSetCurrent(*context);
    if (tx_driver.PrimaryRelease != NULL) tx_driver.PrimaryRelease(device);
    *retained = 0;
    *context = before;
    return TEXPR_OK;
}

static void tx_release(struct tx_loaded const *entry) {
    if (entry->retained && tx_driver.PrimaryRelease != NULL) tx_driver.PrimaryRelease(entry->device);
}

static texpr_status tx_load_locked(struct tx_image const *image, int device, tx_context before) {
    tx_context context = NULL;
    struct tx_loaded *entry = tx_entry(NULL); /* a free one */
    int retained = 0;
    texpr_status status = tx_context_for(device, before, &context, &retained);
    struct tx_loaded unused = {.device = device, .retained = retained};
    if (status != TEXPR_OK || tx_entry(context) != NULL || entry == NULL) {
        int there = status == TEXPR_OK && tx_entry(context) != NULL;
        tx_release(&unused);
        return status != TEXPR_OK ? status : there ? TEXPR_OK : TEXPR_NO_MEMORY;
    }
    entry->device = device;
    entry->retained = retained;
    if ((status = tx_fill(entry, image)) != TEXPR_OK) {
        tx_release(entry);
        return status;
    }
    atomic_store_explicit(&entry->context, context, memory_order_release);
    return TEXPR_OK;
}

/* Load the module for device `ordinal`. Loading twice is fine. The calling thread's context is left as it was; a thread without
   one is given the device's primary context. */
static texpr_status tx_load_module(struct tx_image const *images, int count, int ordinal) {
    tx_context before = NULL;
    texpr_status status;
    int device = 0, chosen = 0;
    TEXPR_TRY(tx_choose(images, count, ordinal, &device, &chosen));
    pthread_mutex_lock(&tx_table_lock);
    if ((status = tx_driver.CtxGetCurrent(&before)) == TEXPR_OK) {
        status = tx_load_locked(&images[chosen], device, before);
        if (before != NULL || status != TEXPR_OK) tx_driver.CtxSetCurrent(before);
    }
    pthread_mutex_unlock(&tx_table_lock);
    return status;
}

/* Unload the module from every context. No launch may be under way. The first failure is told; the rest is unloaded still. */
static texpr_status tx_unload_modules(void) {
    tx_context before = NULL;
    texpr_status first = tx_need_driver();
    if (first != TEXPR_OK) return first;
    pthread_mutex_lock(&tx_table_lock);
    first = tx_driver.CtxGetCurrent(&before);
    for (int i = 0; i < TEXPR_CONTEXTS; i++) {
        struct tx_loaded *entry = &tx_table[i];
        tx_context context = atomic_load(&entry->context);
        if (context == NULL) continue;
        atomic_store(&entry->context, NULL);
        texpr_status status = tx_driver.CtxSetCurrent(context);
        if (status == TEXPR_OK) status = tx_driver.ModuleUnload(entry->module);
        tx_release(entry);
        if (first == TEXPR_OK) first = status;
    }
    tx_driver.CtxSetCurrent(before);
    pthread_mutex_unlock(&tx_table_lock);
    return first;
}

/* ---- launches ------------------------------------------------------------------------------------------------------------ */

/* One launch: which kernel, blocks along each axis, threads of a block. `base[axis]`: the argument that gets the first block of a
   slab, NULL where the grid may not be cut. `shared`: bytes of shared memory beyond what the kernel declares. `cluster`: blocks of a
   cluster along each axis, of which the grid is a multiple. `dependent`: it may start before the launch before it has ended. That must
   be one of the same call: what runs on the stream before a call, all of it ends before the call's first launch begins. */
struct tx_launch {
    int kernel;
    int64_t grid[3];
    unsigned block[3];
    int *base[3];
    unsigned shared;
    unsigned cluster[3];
    int dependent;
};

static inline int tx_is_clustered(struct tx_launch const *launch) {
    return launch->cluster[0] * launch->cluster[1] * launch->cluster[2] > 1;
}

/* One grid that the device takes, with its clusters if it has some. `behind`: the call has launched something. */
static inline texpr_status tx_launch_slab(tx_function kernel, texpr_stream stream, struct tx_launch const *launch,
                                             unsigned const *grid, void **arguments, int behind) {
    unsigned const *block = launch->block;
    struct tx_attribute asked[2];
    unsigned count = 0;
    if (tx_is_clustered(launch))
        asked[count++] = (struct tx_attribute){
            TEXPR_CLUSTER_DIMENSION, {.cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]}}};
    if (launch->dependent && behind && tx_driver.LaunchKernelEx != NULL)
        asked[count++] = (struct tx_attribute){TEXPR_DEPENDENT, {.allowed = 1}};
    if (count == 0)
        return tx_driver.LaunchKernel(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], launch->shared, stream,
                                      arguments, NULL);
    struct tx_config config = {{grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, launch->shared, stream, asked, count};
    return tx_driver.LaunchKernelEx(&config, kernel, arguments, NULL);
}

static inline int tx_is_empty(struct tx_launch const *launch) {
    return launch->grid[0] == 0 || launch->grid[1] == 0 || launch->grid[2] == 0;
}

/* The exact number of blocks as 64 bits, which hold all that any device takes. */
static inline int64_t tx_blocks(texpr_wide count) { return count > INT64_MAX ? INT64_MAX : count < 0 ? 0 : (int64_t)count; }

/* Launch, in slabs where the device takes no larger grid. With `dry` nothing is launched, and it is only said whether it could be.
   No block at all is fine, and launches nothing. `behind`: whether the call has launched something, which it has then. */
static inline texpr_status tx_launch(struct tx_loaded const *loaded, texpr_stream stream, int dry,
                                        struct tx_launch const *launch, void **arguments, int *behind) {
    int64_t slab[3], start[3];
    if (tx_is_empty(launch)) return TEXPR_OK;
    for (int axis = 0; axis < 3; axis++) {
        int64_t most = loaded->grid[axis], blocks = launch->grid[axis];
        if (blocks > most && (launch->base[axis] == NULL || blocks > INT32_MAX)) return TEXPR_BAD_SIZE;
        slab[axis] = blocks < most ? blocks : most - most % launch->cluster[axis];
    }
    if (tx_is_clustered(launch) && tx_driver.LaunchKernelEx == NULL) return TEXPR_NO_CLUSTERS;
    if (dry) return TEXPR_OK;
    for (start[2] = 0; start[2] < launch->grid[2]; start[2] += slab[2])
        for (start[1] = 0; start[1] < launch->grid[1]; start[1] += slab[1])
            for (start[0] = 0; start[0] < launch->grid[0]; start[0] += slab[0]) {
                unsigned grid[3];
                for (int axis = 0; axis < 3; axis++) {
                    int64_t left = launch->grid[axis] - start[axis];
                    grid[axis] = (unsigned)(left < slab[axis] ? left : slab[axis]);
                    if (launch->base[axis] != NULL) *launch->base[axis] = (int)start[axis];
                }
                TEXPR_TRY(tx_launch_slab(loaded->kernels[launch->kernel], stream, launch, grid, arguments, *behind));
                *behind = 1;
            }
    return TEXPR_OK;
}

/* As many blocks as one step of a loop has, if that is the most so far. */
static inline int64_t tx_most_blocks(int64_t most, int64_t x, int64_t y, int64_t z) {
    __int128 const plane = (__int128)x * y, all = plane > INT64_MAX ? INT64_MAX : plane * z;
    return all > INT64_MAX ? INT64_MAX : all > most ? (int64_t)all : most;
}

/* All steps of a loop in one launch, whose blocks meet and count themselves at `meeting`. */
static inline texpr_status tx_launch_together(struct tx_loaded const *loaded, texpr_stream stream, struct tx_launch const *launch,
                                                 void *meeting, void **arguments) {
    unsigned const *block = launch->block;
    TEXPR_TRY(tx_driver.MemsetD8Async((tx_address)(uintptr_t)meeting, 0, 8, stream));
    return tx_driver.LaunchTogether(loaded->kernels[launch->kernel], (unsigned)launch->grid[0], 1, 1, block[0], block[1], block[2],
                                    launch->shared, stream, arguments);
}

/* ---- tensor maps ---------------------------------------------------------------------------------------------------------- */

/* A tensor that is copied in tiles, dimension 0 the innermost: `strides` in bytes, of dimensions 1 and up. The other fields are
   numbers of cuda.h, constants that a compiler has checked. With `columns` it is copied in im2col mode: `box` is channels and
   pixels, and the corners are those of the bounding box, W first. */
struct tx_tensor {
    texpr_wide base, sizes[5], strides[4];
    unsigned rank, box[5], steps[5];
    int element, interleave, swizzle, fill;
    int columns, lower[3], upper[3];
};

/* The rules of the hardware for what is known at a launch alone. CUDA driver API, "cuTensorMapEncodeTiled". Sizes may be 2^32
   there, but coordinates are signed 32-bit integers (PTX ISA, "cp.async.bulk.tensor"), and kernels count through all of them. */
static inline texpr_status tx_check_tensor(struct tx_tensor const *tensor) {
    int const align = tensor->interleave == 2 ? 32 : 16;
    if (tensor->base % align != 0) return TEXPR_TENSOR_BASE;
    for (unsigned at = 0; at < tensor->rank; at++)
        if (tensor->sizes[at] < 1 || tensor->sizes[at] > (texpr_wide)1 << 31) return TEXPR_TENSOR_SIZE;
    for (unsigned at = 0; at + 1 < tensor->rank; at++) {
        texpr_wide stride = tensor->strides[at];
        if (stride < 0 || stride % align != 0 || stride >= (texpr_wide)1 << 40) return TEXPR_TENSOR_STRIDE;
    }
    for (unsigned at = 0; tensor->columns && at + 2 < tensor->rank; at++)
        if (tensor->sizes[at + 1] + tensor->upper[at] - tensor->lower[at] < 1) return TEXPR_TENSOR_SIZE;
    int const lacks = tensor->columns ? tx_driver.TensorMapEncodeIm2col == NULL : tx_driver.TensorMapEncodeTiled == NULL;
    return lacks ? TEXPR_NO_TENSOR_MAPS : TEXPR_OK;
}

/* Encode the map for a launch; with `dry` it is only said whether it could be. */
static inline texpr_status tx_encode(struct tx_launch const *launch, int dry, struct tx_tensor const *tensor,
                                        struct tx_tensor_map *map) {
    uint64_t sizes[5], strides[5];
    if (tx_is_empty(launch)) return TEXPR_OK;
    if (dry) return tx_check_tensor(tensor);
    void *const base = (void *)(uintptr_t)(tensor->base != 0 ? tensor->base : 256); /* of an empty array, which nobody reads */
    for (unsigned at = 0; at < 5; at++) {
        sizes[at] = (uint64_t)tensor->sizes[at];
        strides[at] = at < 4 ? (uint64_t)tensor->strides[at] : 0;
    }
    if (tensor->columns)
        return tx_driver.TensorMapEncodeIm2col(map, tensor->element, tensor->rank, base, sizes, strides,
                                               tensor->lower, tensor->upper, tensor->box[0], tensor->box[1], tensor->steps,
                                               tensor->interleave, tensor->swizzle, 2, tensor->fill);
    return tx_driver.TensorMapEncodeTiled(map, tensor->element, tensor->rank, base, sizes, strides,
                                          tensor->box, tensor->steps, tensor->interleave, tensor->swizzle, 2, tensor->fill);
}

/* ---- values --------------------------------------------------------------------------------------------------------------- */

/* Bytes rounded up so that the next buffer of a workspace begins at a multiple of 256. */
static inline texpr_wide tx_aligned(texpr_wide bytes) { return bytes <= 0 ? 0 : (bytes + 255) / 256 * 256; }

static inline texpr_status tx_check_workspace(void const *workspace, uint64_t needed) {
    if (needed == 0) return TEXPR_OK;
    if (workspace == NULL) return TEXPR_NO_WORKSPACE;
    return (uintptr_t)workspace % 256 == 0 ? TEXPR_OK : TEXPR_MISALIGNED;
}

/* A copy of elements on the device, in host memory that the caller frees. Waits for the stream. */
static inline texpr_status tx_fetch(texpr_stream stream, void const *from, int64_t bytes, void **copy) {
    texpr_status status = TEXPR_OK;
    *copy = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (*copy == NULL) return TEXPR_NO_MEMORY;
    if (bytes > 0) status = tx_driver.MemcpyDtoHAsync(*copy, (tx_address)(uintptr_t)from, (size_t)bytes, stream);
    if (status == TEXPR_OK) status = tx_driver.StreamSynchronize(stream);
    if (status != TEXPR_OK) free(*copy);
    return status;
}

/* A tf32 is an f32 whose last 13 bits are 0: rounded to nearest even; nan stays nan. */
static inline float tx_to_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits = 0x7fc00000u;
    else
        bits = (bits + 0xfffu + ((bits >> 13) & 1u)) & ~0x1fffu;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

#endif
