//! Calls saxpy, z = a x + y, from an artifact: `consumer N [--no-check]`. Exit status 0: every element is right.

use std::env;
use std::error::Error;
use texpr_saxpy::saxpy;

#[cfg(on_cuda)]
mod cuda;

#[cfg(not(on_cuda))]
fn run(a: f32, x: &[f32], y: &[f32]) -> Result<Vec<f32>, Box<dyn Error>> {
    let mut z = vec![-1.0; x.len()];
    saxpy::call(&mut [], a, x, y, &mut z, x.len() as i64)?;
    Ok(z)
}

#[cfg(on_cuda)]
fn run(a: f32, x: &[f32], y: &[f32]) -> Result<Vec<f32>, Box<dyn Error>> {
    use std::ptr::null_mut;
    let driver = cuda::Driver::open()?;
    let (at_x, at_y) = (driver.copy(x)?, driver.copy(y)?);
    let at_z = driver.copy(&vec![-1.0; x.len()])?;
    // SAFETY: the three arrays have x's length, live until `read` has waited, and are no one else's.
    unsafe { saxpy::call(null_mut(), null_mut(), a, at_x.device(), at_y.device(), at_z.device(), x.len() as i64)? };
    at_z.read()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let n: usize = arguments.get(1).map_or(Ok(1000), |text| text.parse())?;
    let check = arguments.get(2).map(String::as_str) != Some("--no-check");

    saxpy::load(0)?;
    let x: Vec<f32> = (0..n).map(|i| (i % 1024) as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (i % 7) as f32).collect();
    let z = run(3.0, &x, &y)?;
    if let Some(i) = (0..n).find(|&i| check && z[i] != 3.0 * x[i] + y[i]) {
        return Err(format!("z[{i}] is {}, not {}", z[i], 3.0 * x[i] + y[i]).into());
    }
    // SAFETY: no call is under way.
    unsafe { saxpy::unload()? };
    println!("saxpy of {n} elements is right");
    Ok(())
}
