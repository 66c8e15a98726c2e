//! What the scripts behind `make demo` and `make test` do on a machine where something is missing.
//! They see a PATH of this test's own, in which package tools are stand-ins.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What the scripts use before they look whether anything is missing.
const TOOLS: [&str; 10] =
    ["bash", "cat", "cmp", "cut", "dirname", "env", "head", "readlink", "sed", "sort"];

/// What is said where there is no Rust.
const NO_CARGO: &str = "cargo is missing: install Rust, see https://rustup.rs\n";

/// A machine without Rust, a compiler and git.
struct Machine {
    programs: TempDir,
    /// A checkout in which nothing was made yet.
    checkout: TempDir,
}

impl Machine {
    fn bare() -> Self {
        let programs = tempfile::tempdir().unwrap();
        for tool in TOOLS {
            let found = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(tool));
            let found = found.into_iter().find(|path| path.exists()).unwrap();
            symlink(found, programs.path().join(tool)).unwrap();
        }
        let checkout = tempfile::tempdir().unwrap();
        for name in ["scripts", "Cargo.toml"] {
            let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
            symlink(repository.join(name), checkout.path().join(name)).unwrap();
        }
        Self { programs, checkout }
    }

    fn path(&self, program: &str) -> PathBuf {
        self.programs.path().join(program)
    }

    /// Has a program that is this script.
    fn has(&self, program: &str, script: &str) {
        let path = self.path(program);
        fs::write(&path, format!("#!{}\n{script}\n", self.path("bash").display())).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    /// Has a package tool that writes down what it is asked for, and brings compiler and git.
    fn has_apt_get(&self) {
        let programs = self.programs.path().display();
        self.has(
            "apt-get",
            &format!(
                "echo \"apt-get $*\" >>{programs}/asked\n\
                 for program in cc make git; do ln -s {programs}/env {programs}/$program; done"
            ),
        );
        symlink("/bin/ln", self.path("ln")).unwrap();
    }

    /// Runs a command of the scripts in the checkout.
    fn run(&self, command: &str, settings: &[(&str, &str)]) -> Output {
        Command::new(self.path("bash"))
            .args(["-c", command])
            .current_dir(self.checkout.path())
            .env("PATH", self.programs.path())
            .env("CARGO_HOME", self.checkout.path())
            .env_remove("DEPS")
            .env_remove("PGWEIR")
            .envs(settings.iter().copied())
            .output()
            .unwrap()
    }

    /// What package tools were asked for.
    fn asked(&self) -> String {
        fs::read_to_string(self.path("asked")).unwrap_or_default()
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn with_deps_no_what_is_missing_is_named_and_nothing_is_done() {
    let machine = Machine::bare();
    machine.has_apt_get();
    let state = machine.path("demo");
    let settings = [("DEPS", "no"), ("DEMO_STATE", state.to_str().unwrap())];
    let output = machine.run("scripts/demo.sh up", &settings);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("Missing: build-essential\n"), "{output:?}");
    let packages = "On Debian: sudo apt-get install -y --no-install-recommends build-essential\n";
    assert_eq!(text(&output.stderr), format!("{NO_CARGO}{packages}"));
    assert!(machine.asked().is_empty() && !state.exists());
}

/// Each kind of thing, though the first of them is missing already.
#[test]
fn with_deps_no_all_that_is_missing_is_named() {
    let machine = Machine::bare();
    machine.has_apt_get();
    let output = machine.run("scripts/deps.sh", &[("DEPS", "no")]);
    assert_eq!(output.status.code(), Some(1));
    let (told, advice) = (text(&output.stdout), text(&output.stderr));
    assert!(told.contains("Missing: rustfmt or clippy\n"), "{output:?}");
    assert!(told.contains("Missing: build-essential git"), "{output:?}");
    assert!(advice.starts_with(NO_CARGO), "{output:?}");
    for line in [
        "With rustup: rustup component add rustfmt clippy\n",
        "On Debian: sudo apt-get install -y --no-install-recommends build-essential git",
        "Missing: .venv with the packages of scripts/requirements.txt. It is made by: make deps\n",
    ] {
        assert!(advice.contains(line), "{output:?}");
    }
    assert!(machine.asked().is_empty());

    // One that is missing is enough, wherever it stands.
    machine.has("cargo", "echo cargo 9999.0.0");
    let need = ". scripts/lib.sh; need cargo; need packages git; need cargo; need_no_more; echo on";
    let output = machine.run(need, &[("DEPS", "no")]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "\n== Missing: git\n");
    machine.has("git", "");
    let output = machine.run(need, &[("DEPS", "no")]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "on\n"));
}

#[test]
fn what_is_missing_is_named_and_installed() {
    let need = ". scripts/lib.sh; need_packages build-essential git";
    for (user, prefix) in [("0", ""), ("1000", "sudo ")] {
        let machine = Machine::bare();
        machine.has_apt_get();
        machine.has("id", &format!("echo {user}"));
        let programs = machine.programs.path().display();
        machine.has("sudo", &format!("echo -n 'sudo ' >>{programs}/asked; exec \"$@\""));
        let output = machine.run(need, &[]);
        assert!(output.status.success(), "{output:?}");
        assert!(text(&output.stdout).contains("Missing: build-essential git\n"), "{output:?}");
        let asked = machine.asked();
        assert!(asked.starts_with(&format!("{prefix}apt-get install ")), "{asked}");
        assert!(asked.ends_with(" build-essential git\n"), "{asked}");
        // The second time nothing is missing.
        let again = machine.run(need, &[]);
        assert!(again.status.success() && again.stdout.is_empty(), "{again:?}");
        assert_eq!(machine.asked(), asked);
    }
}

#[test]
fn where_nothing_can_be_installed_that_is_said() {
    let need = ". scripts/lib.sh; need_packages git";
    let machine = Machine::bare();
    let output = machine.run(need, &[]);
    assert!(text(&output.stderr).contains("please install them yourself"), "{output:?}");
    machine.has_apt_get();
    machine.has("id", "echo 1000");
    let output = machine.run(need, &[]);
    assert!(text(&output.stderr).contains("This needs root, and there is no sudo"), "{output:?}");
    // It is there, and fails.
    machine.has("sudo", "exit 1");
    let output = machine.run(need, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("Without git it cannot go on."), "{output:?}");
}
