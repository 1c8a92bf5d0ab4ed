// The artifact's crate says where its arrays live; the program is compiled for that.
use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(on_cuda)");
    if env::var("DEP_TEXPR_SAXPY_ON").as_deref() == Ok("cuda") {
        println!("cargo:rustc-cfg=on_cuda");
    }
}
