//! Arrays in a GPU's memory, through the driver. A real program has its own.

use std::error::Error;
use std::ffi::{c_char, c_int, c_void, CString};
use std::mem::{size_of, transmute};
use texpr_saxpy::Device;

extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

const NOW: c_int = 2;

type Alloc = unsafe extern "C" fn(*mut u64, usize) -> i32;
type Free = unsafe extern "C" fn(u64) -> i32;
type ToDevice = unsafe extern "C" fn(u64, *const c_void, usize) -> i32;
type ToHost = unsafe extern "C" fn(*mut c_void, u64, usize) -> i32;
type Wait = unsafe extern "C" fn() -> i32;

/// The driver's functions that copy.
pub struct Driver {
    alloc: Alloc,
    free: Free,
    to_device: ToDevice,
    to_host: ToHost,
    wait: Wait,
}

/// Elements on the device, freed with this value.
pub struct Memory<'a> {
    driver: &'a Driver,
    address: u64,
    length: usize,
}

impl Driver {
    /// The driver: `TEXPR_DRIVER_LIBRARY` (the emulator's, say), or CUDA's own.
    pub fn open() -> Result<Driver, Box<dyn Error>> {
        let file = std::env::var("TEXPR_DRIVER_LIBRARY").unwrap_or_else(|_| "libcuda.so.1".into());
        let path = CString::new(file)?;
        // SAFETY: both strings end with 0.
        let library = unsafe { dlopen(path.as_ptr(), NOW) };
        let find = |name: &str| -> Result<*mut c_void, Box<dyn Error>> {
            let symbol = CString::new(name)?;
            let found = if library.is_null() { library } else { unsafe { dlsym(library, symbol.as_ptr()) } };
            if found.is_null() { Err(format!("no CUDA driver, or it has no {name}").into()) } else { Ok(found) }
        };
        // SAFETY: these are the functions' types in the CUDA driver API.
        unsafe {
            Ok(Driver {
                alloc: transmute::<*mut c_void, Alloc>(find("cuMemAlloc_v2")?),
                free: transmute::<*mut c_void, Free>(find("cuMemFree_v2")?),
                to_device: transmute::<*mut c_void, ToDevice>(find("cuMemcpyHtoD_v2")?),
                to_host: transmute::<*mut c_void, ToHost>(find("cuMemcpyDtoH_v2")?),
                wait: transmute::<*mut c_void, Wait>(find("cuCtxSynchronize")?),
            })
        }
    }

    /// A copy of `values` on the device.
    pub fn copy(&self, values: &[f32]) -> Result<Memory<'_>, Box<dyn Error>> {
        let mut memory = Memory { driver: self, address: 0, length: values.len() };
        if !values.is_empty() {
            let bytes = size_of::<f32>() * values.len();
            // SAFETY: the memory has room for the values.
            check(unsafe { (self.alloc)(&mut memory.address, bytes) })?;
            check(unsafe { (self.to_device)(memory.address, values.as_ptr().cast(), bytes) })?;
        }
        Ok(memory)
    }
}

impl Memory<'_> {
    /// What the artifact's functions take.
    pub fn device(&self) -> Device<f32> {
        // SAFETY: the memory lives as long as `self`.
        unsafe { Device::from_raw(self.address as *mut f32, self.length) }
    }

    /// The elements, after all that was queued.
    pub fn read(&self) -> Result<Vec<f32>, Box<dyn Error>> {
        let mut values = vec![0.0; self.length];
        // SAFETY: both have `length` elements.
        check(unsafe { (self.driver.wait)() })?;
        if !values.is_empty() {
            let bytes = size_of::<f32>() * self.length;
            check(unsafe { (self.driver.to_host)(values.as_mut_ptr().cast(), self.address, bytes) })?;
        }
        Ok(values)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if self.length > 0 {
            // SAFETY: it was allocated, and nothing uses it any more.
            unsafe { (self.driver.free)(self.address) };
        }
    }
}

fn check(code: i32) -> Result<(), Box<dyn Error>> {
    if code == 0 { Ok(()) } else { Err(format!("the CUDA driver fails with {code}").into()) }
}
