extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device, void **stream);

/* The device of a tensor while such an object lives. */
class tx_on_device {
    int32_t device;
    torch::stable::accelerator::DeviceGuard guard;

public:
    explicit tx_on_device(Tensor const &given) : device(given.get_device_index()), guard(device) {}

    template <texpr_status (*Load)(int)>
    void load(char const *what) const {
        static std::once_flag once[256];
        std::call_once(once[device & 255], [&] { tx_fine(Load(device), what); });
    }

    texpr_stream stream() const {
        void *found = nullptr;
        TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device, &found));
        return found;
    }
};
