use super::*;

#[test]
fn a_process_without_a_cgroup_for_processors_is_known() {
    assert!(is_at_root("2:cpuacct:/\n1:cpu:/\n0::/\n"));
    assert!(is_at_root("5:cpu,cpuacct:/\n4:memory:/system.slice\n0::/system.slice/a.service\n"));
    assert!(is_at_root("0::/\n"));
}

#[test]
fn a_process_of_a_service_or_a_container_is_known() {
    assert!(!is_at_root("0::/user.slice/user-0.slice/session-1.scope\n"));
    assert!(!is_at_root("5:cpu,cpuacct:/docker/12\n4:memory:/\n0::/\n"));
    assert!(!is_at_root(""));
}

#[test]
fn a_group_is_made_where_the_controller_is() {
    let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                  cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
                  cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu,cpuacct 0 0\n";
    assert_eq!(root(mounts), Some(PathBuf::from("/sys/fs/cgroup/cpu")));
    assert_eq!(root("cgroup2 /nowhere cgroup2 rw 0 0\n"), None);
    assert_eq!(root("proc /proc proc rw 0 0\n"), None);
}
