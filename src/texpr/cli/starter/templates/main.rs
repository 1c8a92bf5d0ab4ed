//! Calls @NAME@, y = a x + b, on a CPU.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = vec![0.0; x.len()];
    texpr_@NAME@::@NAME@::call(&mut [], 2.0, &x, 1.0, &mut y, x.len() as i64)?;
    if let Some(i) = (0..x.len()).find(|&i| y[i] != 2.0 * x[i] + 1.0) {
        return Err(format!("y[{i}] is {}", y[i]).into());
    }
    println!("@NAME@ of {} elements is right", y.len());
    Ok(())
}
