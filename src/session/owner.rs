//! Who works on a session: host and process. A running session whose process is gone was interrupted.

use std::path::Path;

/// A process on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub host: String,
    pub pid: i64,
}

impl Owner {
    /// This process.
    pub fn this() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .or_else(|_| std::fs::read_to_string("/etc/hostname"))
            .map(|name| name.trim().to_owned());
        Self { host: host.unwrap_or_default(), pid: i64::from(std::process::id()) }
    }

    /// Whether the process is known to be gone. Only a process of the same host can be looked for, and only where
    /// there is a `/proc`; of the others the missing heartbeat tells.
    pub fn is_gone(&self, here: &Self) -> bool {
        let proc = Path::new("/proc");
        let can_look = !self.host.is_empty() && self.host == here.host && proc.join("self").exists();
        can_look && !proc.join(self.pid.to_string()).exists()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_there_and_one_of_another_host_is_not_known_to_be_gone() {
        let here = Owner::this();
        assert!(!here.is_gone(&here));
        // Above the largest number that Linux gives to a process.
        let nobody = Owner { pid: 1 << 30, ..here.clone() };
        assert_eq!(nobody.is_gone(&here), Path::new("/proc/self").exists() && !here.host.is_empty());
        assert!(!Owner { host: "elsewhere".into(), pid: 1 << 30 }.is_gone(&here));
    }
}
