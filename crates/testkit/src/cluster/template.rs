use std::{
    env, fs,
    fs::File,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{
    fs::{FlockOperation, flock},
    process::geteuid,
};

use crate::{
    fail::OrFail,
    postgres::{ServiceUser, run, tool, version},
    scratch::Scratch,
};

/// Part of the template's name: raise it when the arguments of initdb below change.
const REVISION: u32 = 1;

/// Puts a fresh data folder at `data`.
///
/// initdb takes a second and a copy of what it made a tenth: so it runs once for each server
/// version and user, and its folder stays in cargo's target folder.
pub(super) fn copy_to(data: &Path) {
    let template = made();
    run(Command::new("cp").args(["-a", "--reflink=auto"]).arg(template).arg(data));
}

/// The template's path, after making it if need be. One process at a time looks or makes.
fn made() -> PathBuf {
    let folder = shelf();
    fs::create_dir_all(&folder).or_fail(format!("create {folder:?}"));
    let uid = ServiceUser::when_root().map_or_else(|| geteuid().as_raw(), |user| user.uid);
    let name = format!("initdb-{}-uid{uid}-r{REVISION}", version());
    let template = folder.join(&name);

    let lock = File::create(folder.join("lock")).or_fail("create the lock of the templates");
    flock(&lock, FlockOperation::LockExclusive).or_fail("lock the templates");
    if !template.exists() {
        make(&template);
    }
    template
}

/// Makes it aside and renames it when it is whole: a template that exists is a good one.
fn make(template: &Path) {
    let user = ServiceUser::when_root();
    // The service user may be unable to enter the target folder, so initdb works elsewhere.
    let scratch = Scratch::new(user);
    let data = scratch.join("data");
    let mut initdb = tool("initdb");
    initdb
        .arg("-D")
        .arg(&data)
        .args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale"])
        .args(["--no-sync", "--no-instructions"])
        .current_dir(scratch.path());
    if let Some(user) = user {
        initdb.uid(user.uid).gid(user.gid);
    }
    run(&mut initdb);

    let unfinished = template.with_file_name("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).or_fail(format!("remove {unfinished:?}"));
    }
    run(Command::new("cp").arg("-a").arg(&data).arg(&unfinished));
    fs::rename(&unfinished, template).or_fail(format!("create {template:?}"));
}

/// The folder for templates: in cargo's target folder, which is where the running test lies.
fn shelf() -> PathBuf {
    let program = env::current_exe().or_fail("find the running program");
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    target.map_or_else(env::temp_dir, Path::to_owned).join("pgweir-testkit")
}
