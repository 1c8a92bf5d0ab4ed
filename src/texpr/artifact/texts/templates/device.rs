
/// Elements in a device's memory, which the borrow checker cannot follow: see `from_raw`.
#[derive(Clone, Copy)]
pub struct Device<T> {
    pointer: *mut T,
    length: usize,
}

impl<T> Device<T> {
    /// # Safety
    /// `pointer` is a device address with room for `length` elements until every call that is given it has finished there.
    pub unsafe fn from_raw(pointer: *mut T, length: usize) -> Self {
        Device { pointer, length }
    }
    fn len(&self) -> usize {
        self.length
    }
    fn as_ptr(&self) -> *const T {
        self.pointer
    }
    fn as_mut_ptr(&self) -> *mut T {
        self.pointer
    }
}
