//! Functions of @NAME@, built by texpr. Each is a module with its call and what belongs to it.
#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_char, c_void, CStr};
use std::fmt;

/// Why a call failed: above 0 the driver's own code, below 0 one of ours.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Status(pub i32);

impl Status {
@CODES@

    fn check(code: i32) -> Result<(), Status> {
        if code == 0 { Ok(()) } else { Err(Status(code)) }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the library gives a string that is never freed.
        let text = unsafe { CStr::from_ptr(texpr_status_string(self.0)) };
        write!(out, "{} ({})", text.to_string_lossy(), self.0)
    }
}

/// The same words: what a `main` that returns a status shows.
impl fmt::Debug for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl std::error::Error for Status {}

extern "C" {
    fn texpr_status_string(status: i32) -> *const c_char;
}
@MEMORY@
#[allow(dead_code)]
mod size {
    /// Elements from an array's first to its last; `None` where that is no count.
    pub fn span(shape: &[i128], stride: Option<&[i128]>) -> Option<i128> {
        if shape.iter().any(|&extent| extent < 0) {
            return None;
        }
        if shape.contains(&0) {
            return Some(0);
        }
        let (mut last, mut step) = (0i128, 1i128);
        for axis in (0..shape.len()).rev() {
            last = (shape[axis] - 1).checked_mul(stride.map_or(step, |all| all[axis]))?.checked_add(last)?;
            step = step.checked_mul(shape[axis])?;
        }
        last.checked_add(1)
    }

    pub fn floordiv(a: i128, b: i128) -> i128 {
        if b == 0 { 0 } else { a / b - i128::from(a % b != 0 && (a < 0) != (b < 0)) }
    }

    pub fn modulo(a: i128, b: i128) -> i128 {
        if b == 0 { 0 } else { a - b * floordiv(a, b) }
    }
}
