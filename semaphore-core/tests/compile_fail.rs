//! What must not compile (SPEC.md 1): giving a lease back twice, and a lease or a request that outlives
//! its semaphore. Each program in `compile_fail/` says which error is due, and `control.rs` that the
//! others fail for that reason alone.
//!
//! The error code is compared and not the text, which changes with the compiler. (trybuild would, besides,
//! build all dev-dependencies a second time, SQLite among them.)
#![cfg(not(any(feature = "loom", feature = "shuttle")))]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The error code that the program has to fail with; none if it has to compile.
fn due(program: &str) -> Option<&str> {
    let line = program.lines().next().unwrap();
    if line == "//! Must compile." {
        return None;
    }
    Some(line.strip_prefix("//! Must fail with ").and_then(|rest| rest.strip_suffix('.')).unwrap())
}

#[test]
fn misuse_does_not_compile() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    let bins = project.join("src/bin");
    let _ = fs::remove_dir_all(&bins);
    fs::create_dir_all(&bins).unwrap();
    let manifest = format!(
        "[package]\nname = \"misuse\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\nsemaphore-core = {{ path = {package:?} }}\n"
    );
    fs::write(project.join("Cargo.toml"), manifest).unwrap();
    // The same versions as here, and nothing to be fetched.
    fs::copy(package.join("../Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let mut expected = BTreeMap::new();
    for entry in fs::read_dir(package.join("tests/compile_fail")).unwrap() {
        let path = entry.unwrap().path();
        let program = fs::read_to_string(&path).unwrap();
        expected.insert(
            path.file_stem().unwrap().to_str().unwrap().to_owned(),
            due(&program).map(str::to_owned),
        );
        fs::write(bins.join(path.file_name().unwrap()), program).unwrap();
    }
    assert!(expected.len() > 1);

    for (name, due) in expected {
        let output = Command::new(env!("CARGO"))
            // `build`: an error in a constant is found when it is evaluated.
            .args(["build", "--offline", "--quiet", "--color=never", "--bin", &name])
            .arg("--manifest-path")
            .arg(project.join("Cargo.toml"))
            .env("CARGO_TARGET_DIR", project.join("target"))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        match due {
            None => assert!(output.status.success(), "{name} must compile:\n{told}"),
            Some(code) => {
                assert!(!output.status.success(), "{name} must not compile");
                let errors: Vec<_> =
                    told.lines().filter(|line| line.starts_with("error[")).collect();
                assert!(
                    matches!(errors[..], [one] if one.starts_with(&format!("error[{code}]"))),
                    "{name} must fail with {code} alone:\n{told}"
                );
            }
        }
    }
}
