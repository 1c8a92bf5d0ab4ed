/* A CUDA driver that runs nothing: it records what a launcher asks of it, and refuses what a real driver would refuse.

   The environment says how it behaves, read at each call:
     FAKE_DRIVER_LOG         file to which a line is added for each call
     FAKE_DRIVER_CAPABILITY  compute capability of every device ("9.0")
     FAKE_DRIVER_DEVICES     how many devices there are ("1")
     FAKE_DRIVER_GRID        the most blocks along x, y and z ("2147483647,65535,65535")
     FAKE_DRIVER_KERNELS     bytes of each kernel's arguments, "saxpy_0:8,8,4,4;other:8", so that they can be read
     FAKE_DRIVER_FAIL        calls that fail and how, "cuModuleLoadData=200,cuLaunchKernel=719"

   Numbers of errors and attributes are those of the CUDA driver API's cuda.h. */
#define _GNU_SOURCE
#include <elf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, INVALID_IMAGE = 200,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700 };

struct context { int device, references; };
struct module { struct context *context; unsigned char const *image; int alive; };
struct function { struct module *module; char name[256]; };
struct memory { unsigned char *start; size_t bytes; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context primary[8];
static struct module modules[256];
static struct function functions[1024];
static struct memory memories[1024];
static int initialized, module_count, function_count, memory_count;
static _Thread_local struct context *current;

/* ---- what the environment says, and the log --------------------------------------------------------------------------- */

static char const *setting(char const *name, char const *otherwise) {
    char const *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : otherwise;
}

static void record(char const *format, ...) {
    char const *path = setting("FAKE_DRIVER_LOG", NULL);
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    va_list values;
    if (file == NULL) return;
    va_start(values, format);
    vfprintf(file, format, values);
    va_end(values);
    fputc('\n', file);
    fclose(file);
}

/* The error that the environment wants of this call. */
static int planted(char const *call) {
    char const *at = strstr(setting("FAKE_DRIVER_FAIL", ""), call);
    return at != NULL && at[strlen(call)] == '=' ? atoi(at + strlen(call) + 1) : OK;
}

#define ENTER(CALL) \
    { \
        int wanted = planted(CALL); \
        if (wanted != OK) { \
            record(CALL " fails=%d", wanted); \
            return wanted; \
        } \
        if (!initialized) return NOT_INITIALIZED; \
    }

/* ---- devices and contexts ---------------------------------------------------------------------------------------------- */

EXPORT int cuInit(unsigned flags) {
    int wanted = planted("cuInit");
    record("cuInit flags=%u", flags);
    if (wanted == OK) initialized = 1;
    return wanted;
}

EXPORT int cuDriverGetVersion(int *version) { return *version = 13000, OK; }

EXPORT int cuDeviceGet(int *device, int ordinal) {
    ENTER("cuDeviceGet");
    if (ordinal < 0 || ordinal >= atoi(setting("FAKE_DRIVER_DEVICES", "1"))) return INVALID_DEVICE;
    return *device = ordinal, OK;
}

EXPORT int cuDeviceGetName(char *name, int room, int device) {
    ENTER("cuDeviceGetName");
    (void)device;
    return snprintf(name, (size_t)room, "fake device"), OK;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
    int major = 9, minor = 0, grid[3] = {2147483647, 65535, 65535};
    ENTER("cuDeviceGetAttribute");
    (void)device;
    sscanf(setting("FAKE_DRIVER_CAPABILITY", "9.0"), "%d.%d", &major, &minor);
    sscanf(setting("FAKE_DRIVER_GRID", ""), "%d,%d,%d", &grid[0], &grid[1], &grid[2]);
    switch (attribute) {
    case 5: case 6: case 7: *value = grid[attribute - 5]; return OK;
    case 75: *value = major; return OK;
    case 76: *value = minor; return OK;
    case 38: *value = 1 << 20; return OK; /* bytes of the second-level cache */
    case 97: *value = 232448; return OK;
    default: return INVALID_VALUE;
    }
}

EXPORT int cuDevicePrimaryCtxRetain(struct context **context, int device) {
    ENTER("cuDevicePrimaryCtxRetain");
    pthread_mutex_lock(&lock);
    primary[device].device = device;
    primary[device].references++;
    *context = &primary[device];
    record("cuDevicePrimaryCtxRetain device=%d references=%d", device, primary[device].references);
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER("cuDevicePrimaryCtxRelease");
    pthread_mutex_lock(&lock);
    primary[device].references--;
    record("cuDevicePrimaryCtxRelease device=%d references=%d", device, primary[device].references);
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuCtxGetCurrent(struct context **context) {
    ENTER("cuCtxGetCurrent");
    return *context = current, OK;
}

EXPORT int cuCtxSetCurrent(struct context *context) {
    ENTER("cuCtxSetCurrent");
    return current = context, OK;
}

EXPORT int cuCtxGetDevice(int *device) {
    ENTER("cuCtxGetDevice");
    if (current == NULL) return INVALID_CONTEXT;
    return *device = current->device, OK;
}

EXPORT int cuCtxSynchronize(void) {
    ENTER("cuCtxSynchronize");
    return record("cuCtxSynchronize"), OK;
}

/* ---- modules ------------------------------------------------------------------------------------------------------------ */

/* Whether the image, a cubin or PTX, has a kernel `name`. */
static int has_kernel(unsigned char const *image, char const *name) {
    char wanted[300];
    if (memcmp(image, ELFMAG, SELFMAG) != 0) {
        snprintf(wanted, sizeof wanted, ".entry %s(", name);
        return strstr((char const *)image, wanted) != NULL;
    }
    Elf64_Ehdr const *header = (Elf64_Ehdr const *)image;
    Elf64_Shdr const *sections = (Elf64_Shdr const *)(image + header->e_shoff);
    char const *names = (char const *)image + sections[header->e_shstrndx].sh_offset;
    snprintf(wanted, sizeof wanted, ".text.%s", name);
    for (int i = 0; i < header->e_shnum; i++)
        if (strcmp(names + sections[i].sh_name, wanted) == 0) return 1;
    return 0;
}

EXPORT int cuModuleLoadData(struct module **module, void const *image) {
    ENTER("cuModuleLoadData");
    if (current == NULL) return INVALID_CONTEXT;
    int elf = memcmp(image, ELFMAG, SELFMAG) == 0;
    if (!elf && strstr((char const *)image, ".version") == NULL) return INVALID_IMAGE;
    pthread_mutex_lock(&lock);
    *module = &modules[module_count++];
    **module = (struct module){current, image, 1};
    record("cuModuleLoadData module=%d kind=%s device=%d", module_count - 1, elf ? "cubin" : "ptx", current->device);
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuModuleUnload(struct module *module) {
    ENTER("cuModuleUnload");
    if (!module->alive || module->context != current) return INVALID_CONTEXT;
    module->alive = 0;
    return record("cuModuleUnload module=%d", (int)(module - modules)), OK;
}

EXPORT int cuModuleGetFunction(struct function **function, struct module *module, char const *name) {
    ENTER("cuModuleGetFunction");
    if (!module->alive) return INVALID_HANDLE;
    if (!has_kernel(module->image, name)) return NOT_FOUND;
    pthread_mutex_lock(&lock);
    *function = &functions[function_count++];
    (*function)->module = module;
    snprintf((*function)->name, sizeof (*function)->name, "%s", name);
    pthread_mutex_unlock(&lock);
    return record("cuModuleGetFunction module=%d name=%s", (int)(module - modules), name), OK;
}

EXPORT int cuFuncSetAttribute(struct function *function, int attribute, int value) {
    ENTER("cuFuncSetAttribute");
    return record("cuFuncSetAttribute name=%s attribute=%d value=%d", function->name, attribute, value), OK;
}

EXPORT int cuFuncGetAttribute(int *value, int attribute, struct function *function) {
    ENTER("cuFuncGetAttribute");
    (void)function, (void)attribute;
    return *value = 0, OK;
}

/* ---- launches ------------------------------------------------------------------------------------------------------------ */

/* Whether an 8-byte argument is memory of ours, or no pointer at all (0). */
static int is_known(uint64_t value) {
    if (value == 0) return 1;
    for (int i = 0; i < memory_count; i++)
        if (value >= (uintptr_t)memories[i].start && value <= (uintptr_t)memories[i].start + memories[i].bytes) return 1;
    return 0;
}

/* The arguments as " a=7 b=9", in hexadecimal; -1 where a pointer is to no memory of ours. */
static int write_arguments(char *text, size_t room, char const *kernel, void **arguments) {
    char const *at = setting("FAKE_DRIVER_KERNELS", "");
    size_t length = strlen(kernel);
    text[0] = '\0';
    for (; at != NULL && *at != '\0'; at = strchr(at, ';') != NULL ? strchr(at, ';') + 1 : NULL) {
        if (strncmp(at, kernel, length) != 0 || at[length] != ':') continue;
        char const *size = at + length + 1;
        for (int i = 0; *size >= '0' && *size <= '9'; i++) {
            int bytes = (int)strtol(size, (char **)&size, 10);
            uint64_t value = 0;
            memcpy(&value, arguments[i], (size_t)bytes);
            if (bytes == 8 && !is_known(value)) return -1;
            size_t used = strlen(text);
            snprintf(text + used, room - used, "%s%" PRIx64, i ? "," : "", value);
            if (*size == ',') size++;
        }
        return 0;
    }
    return 0;
}

/* `together`: what a record says of clusters. */
static int launch(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                  unsigned shared, void *stream, void **arguments, void **extra, char const *together) {
    int most[3] = {2147483647, 65535, 65535};
    char text[2000];
    sscanf(setting("FAKE_DRIVER_GRID", ""), "%d,%d,%d", &most[0], &most[1], &most[2]);
    if (function == NULL || !function->module->alive) return INVALID_HANDLE;
    if (current == NULL || function->module->context != current) return INVALID_CONTEXT;
    if (gx == 0 || gy == 0 || gz == 0 || gx > (unsigned)most[0] || gy > (unsigned)most[1] || gz > (unsigned)most[2])
        return INVALID_VALUE;
    if (bx == 0 || by == 0 || bz == 0 || (uint64_t)bx * by * bz > 1024 || bz > 64 || extra != NULL) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    int wrong = write_arguments(text, sizeof text, function->name, arguments);
    record("cuLaunchKernel name=%s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%p%s arguments=%s", function->name, gx, gy, gz, bx,
           by, bz, shared, stream, together, wrong ? "illegal" : text);
    pthread_mutex_unlock(&lock);
    return wrong ? ILLEGAL_ADDRESS : OK;
}

EXPORT int cuLaunchKernel(struct function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void *stream, void **arguments, void **extra) {
    ENTER("cuLaunchKernel");
    return launch(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra, "");
}

/* CUlaunchConfig and CUlaunchAttribute of cuda.h; attribute 4 is the shape of a cluster, of which the grid is a multiple, 6 that
   the launch may start before the one before it has ended. */
struct attribute {
    int id;
    _Alignas(8) unsigned value[16];
};
struct config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct attribute const *attributes;
    unsigned count;
};

EXPORT int cuLaunchKernelEx(struct config const *config, struct function *function, void **arguments, void **extra) {
    unsigned const *grid = config->grid, *block = config->block;
    char text[80] = "";
    ENTER("cuLaunchKernelEx");
    for (unsigned at = 0; at < config->count; at++) {
        unsigned const *given = config->attributes[at].value;
        size_t end = strlen(text);
        if (config->attributes[at].id == 6) snprintf(text + end, sizeof text - end, " dependent=%u", given[0]);
        else if (config->attributes[at].id != 4) return INVALID_VALUE;
        else {
            for (int axis = 0; axis < 3; axis++)
                if (given[axis] == 0 || grid[axis] % given[axis] != 0) return INVALID_VALUE;
            snprintf(text + end, sizeof text - end, " cluster=%u,%u,%u", given[0], given[1], given[2]);
        }
    }
    return launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], config->shared, config->stream, arguments, extra,
                  text);
}

/* ---- memory and streams --------------------------------------------------------------------------------------------------- */

enum { POISONED = 1 << 24 };

EXPORT int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    ENTER("cuMemAlloc");
    if (current == NULL) return INVALID_CONTEXT;
    unsigned char *start = bytes > 0 ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    if (start == NULL) return bytes > 0 ? OUT_OF_MEMORY : INVALID_VALUE;
    memset(start, 0xff, bytes < POISONED ? bytes : POISONED); /* gigabytes stay untouched: no page of them is taken */
    pthread_mutex_lock(&lock);
    memories[memory_count++ % 1024] = (struct memory){start, bytes};
    pthread_mutex_unlock(&lock);
    *address = (uintptr_t)start;
    return record("cuMemAlloc bytes=%zu", bytes), OK;
}

EXPORT int cuMemFree_v2(uint64_t address) {
    ENTER("cuMemFree");
    free((void *)(uintptr_t)address);
    return record("cuMemFree"), OK;
}

EXPORT int cuMemcpyHtoD_v2(uint64_t to, void const *from, size_t bytes) {
    ENTER("cuMemcpyHtoD");
    return memcpy((void *)(uintptr_t)to, from, bytes), OK;
}

EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    ENTER("cuMemcpyDtoH");
    return memcpy(to, (void const *)(uintptr_t)from, bytes), OK;
}

EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, void const *from, size_t bytes, void *stream) {
    record("cuMemcpyHtoDAsync bytes=%zu stream=%p", bytes, stream);
    return cuMemcpyHtoD_v2(to, from, bytes);
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
    record("cuMemcpyDtoHAsync bytes=%zu stream=%p", bytes, stream);
    return cuMemcpyDtoH_v2(to, from, bytes);
}

EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    ENTER("cuMemcpyDtoDAsync");
    record("cuMemcpyDtoDAsync bytes=%zu stream=%" PRIxPTR, bytes, (uintptr_t)stream);
    return memmove((void *)(uintptr_t)to, (void const *)(uintptr_t)from, bytes), OK;
}

EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t words, void *stream) {
    ENTER("cuMemsetD32Async");
    record("cuMemsetD32Async words=%zu stream=%" PRIxPTR, words, (uintptr_t)stream);
    for (size_t i = 0; i < words; i++) ((uint32_t *)(uintptr_t)to)[i] = value;
    return OK;
}

EXPORT int cuEventCreate(void **event, unsigned flags) {
    static uintptr_t count;
    ENTER("cuEventCreate");
    *event = (void *)++count;
    record("cuEventCreate flags=%u event=%" PRIuPTR, flags, count);
    return OK;
}

EXPORT int cuEventRecord(void *event, void *stream) {
    ENTER("cuEventRecord");
    record("cuEventRecord event=%" PRIuPTR " stream=%" PRIxPTR, (uintptr_t)event, (uintptr_t)stream);
    return OK;
}

EXPORT int cuEventSynchronize(void *event) {
    ENTER("cuEventSynchronize");
    record("cuEventSynchronize event=%" PRIuPTR, (uintptr_t)event);
    return OK;
}

/* As many milliseconds as lie between the events' numbers. */
EXPORT int cuEventElapsedTime(float *took, void *start, void *end) {
    ENTER("cuEventElapsedTime");
    *took = (float)((uintptr_t)end - (uintptr_t)start);
    return OK;
}

EXPORT int cuEventDestroy_v2(void *event) {
    ENTER("cuEventDestroy");
    record("cuEventDestroy event=%" PRIuPTR, (uintptr_t)event);
    return OK;
}

/* Graphs: of what is captured nothing is kept; numbers stand for them. */
static uintptr_t graphs;
static void *captured;

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode) {
    ENTER("cuStreamBeginCapture");
    if (stream == NULL || captured != NULL) return INVALID_VALUE; /* the default stream captures nothing */
    captured = stream;
    return record("cuStreamBeginCapture mode=%d", mode), OK;
}

EXPORT int cuStreamEndCapture(void *stream, void **graph) {
    ENTER("cuStreamEndCapture");
    if (stream != captured) return INVALID_VALUE;
    captured = NULL;
    *graph = (void *)++graphs;
    return record("cuStreamEndCapture graph=%" PRIuPTR, graphs), OK;
}

EXPORT int cuGraphInstantiateWithFlags(void **runs, void *graph, unsigned long long flags) {
    ENTER("cuGraphInstantiate");
    *runs = (void *)((uintptr_t)graph + 1000);
    return record("cuGraphInstantiate graph=%" PRIuPTR " flags=%llu", (uintptr_t)graph, flags), OK;
}

EXPORT int cuGraphLaunch(void *runs, void *stream) {
    ENTER("cuGraphLaunch");
    return record("cuGraphLaunch graph=%" PRIuPTR " stream=%" PRIxPTR, (uintptr_t)runs, (uintptr_t)stream), OK;
}

EXPORT int cuGraphDestroy(void *graph) {
    ENTER("cuGraphDestroy");
    return record("cuGraphDestroy graph=%" PRIuPTR, (uintptr_t)graph), OK;
}

EXPORT int cuGraphExecDestroy(void *runs) {
    ENTER("cuGraphExecDestroy");
    return record("cuGraphExecDestroy graph=%" PRIuPTR, (uintptr_t)runs), OK;
}

EXPORT int cuStreamCreate(void **stream, unsigned flags) {
    ENTER("cuStreamCreate");
    (void)flags;
    return *stream = malloc(1), OK;
}

EXPORT int cuStreamDestroy_v2(void *stream) {
    ENTER("cuStreamDestroy");
    return free(stream), OK;
}

EXPORT int cuStreamSynchronize(void *stream) {
    ENTER("cuStreamSynchronize");
    return record("cuStreamSynchronize stream=%p", stream), OK;
}

EXPORT int cuGetErrorString(int code, char const **text) {
    return *text = code == OK ? "no error" : "an error of the fake driver", OK;
}

/* A context of a user's own on device 0. */
EXPORT int fake_make_context(struct context **context) {
    static struct context made[8];
    static int count;
    return *context = &made[count++ % 8], OK;
}
