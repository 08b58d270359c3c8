//! A node or virtual machine as node_exporter sees it: well unless told otherwise.

use super::curve::Curve;
use super::service::sampled;
use super::world::World;

pub struct Host {
    pub name: &'static str,
    /// Label that names it: `node` in a cluster, `instance` elsewhere.
    label: &'static str,
    cores: f64,
    /// Share of processor time, 0 to 1.
    busy: Curve,
    iowait: Curve,
    /// GiB in use of 32.
    memory: Curve,
    /// Mount point, size in GiB, share in use.
    disks: Vec<(&'static str, f64, Curve)>,
    /// Share of time in which the disk is at work, and mean seconds of a write.
    io: Curve,
    write_seconds: Curve,
    /// Minute since which its exporter is silent.
    end: f64,
}

impl Host {
    pub fn new(name: &'static str) -> Host {
        Host {
            name,
            label: "node",
            cores: 8.0,
            busy: 0.24.into(),
            iowait: 0.01.into(),
            memory: 13.0.into(),
            disks: Vec::new(),
            io: 0.06.into(),
            write_seconds: 0.0012.into(),
            end: f64::INFINITY,
        }
    }

    pub fn machine(name: &'static str) -> Host {
        Host { label: "instance", ..Host::new(name) }
    }

    pub fn busy(mut self, share: impl Into<Curve>) -> Host {
        self.busy = share.into();
        self
    }

    pub fn iowait(mut self, share: impl Into<Curve>) -> Host {
        self.iowait = share.into();
        self
    }

    pub fn memory(mut self, gibibytes: impl Into<Curve>) -> Host {
        self.memory = gibibytes.into();
        self
    }

    pub fn disk(mut self, mount: &'static str, gibibytes: f64, used: impl Into<Curve>) -> Host {
        self.disks.push((mount, gibibytes, used.into()));
        self
    }

    pub fn io(mut self, share: impl Into<Curve>, write_seconds: impl Into<Curve>) -> Host {
        self.io = share.into();
        self.write_seconds = write_seconds.into();
        self
    }

    pub fn silent(mut self, minute: f64) -> Host {
        self.end = minute;
        self
    }

    pub fn generate(&self, world: &mut World) {
        world.end = self.end;
        self.series(world);
        world.end = f64::INFINITY;
    }

    fn series(&self, world: &mut World) {
        let me = format!(r#"{}="{}""#, self.label, self.name);
        let gibi = 1024.0 * 1024.0 * 1024.0;
        let cores = self.cores;
        let idle = sampled(world, |minute| (1.0 - self.busy.at(minute) - self.iowait.at(minute)).max(0.0) * cores);
        for (mode, curve) in [
            ("idle", idle),
            ("user", self.busy.map(|share| share * 0.8 * cores)),
            ("system", self.busy.map(|share| share * 0.2 * cores)),
            ("iowait", self.iowait.map(|share| share * cores)),
        ] {
            world.put_counter(&format!(r#"node_cpu_seconds_total{{{me},cpu="all",mode="{mode}"}}"#), &curve);
        }
        // Load counts what runs and what waits for the disk; a full processor has a queue as well.
        let load = sampled(world, |minute| {
            let busy = self.busy.at(minute);
            (busy + self.iowait.at(minute) * 1.3) * cores + if busy > 0.9 { (busy - 0.9) * 14.0 * cores } else { 0.0 }
        });
        world.put_gauge(&format!("node_load1{{{me}}}"), &load, 0.06);
        world.put_gauge(&format!("node_memory_MemTotal_bytes{{{me}}}"), &(32.0 * gibi).into(), 0.0);
        let left = self.memory.map(|used| (32.0 - used) * gibi);
        world.put_gauge(&format!("node_memory_MemAvailable_bytes{{{me}}}"), &left, 0.004);
        self.disk_metrics(world, &me, gibi);
        world.put_gauge(&format!("node_filefd_allocated{{{me}}}"), &6200.0.into(), 0.02);
        world.put_gauge(&format!("node_filefd_maximum{{{me}}}"), &1_048_576.0.into(), 0.0);
        world.put_counter(&format!(r#"node_network_receive_bytes_total{{{me},device="eth0"}}"#), &4.2e6.into());
    }

    fn disk_metrics(&self, world: &mut World, me: &str, gibi: f64) {
        let root = [("/", 100.0, Curve::from(0.41))];
        let disks = if self.disks.iter().any(|disk| disk.0 == "/") { &[][..] } else { &root[..] };
        for (mount, size, used) in disks.iter().chain(&self.disks) {
            let labels = format!(r#"{me},mountpoint="{mount}",fstype="ext4""#);
            world.put_gauge(&format!("node_filesystem_size_bytes{{{labels}}}"), &(size * gibi).into(), 0.0);
            let free = used.map(|share| (1.0 - share).max(0.0) * size * gibi);
            world.put_gauge(&format!("node_filesystem_avail_bytes{{{labels}}}"), &free, 0.0);
            world.put_gauge(&format!("node_filesystem_files_free{{{labels}}}"), &5.9e6.into(), 0.0005);
        }
        let device = format!(r#"{me},device="nvme0n1""#);
        world.put_counter(&format!("node_disk_io_time_seconds_total{{{device}}}"), &self.io);
        let writes = self.io.map(|share| 40.0 + share * 900.0);
        world.put_counter(&format!("node_disk_writes_completed_total{{{device}}}"), &writes);
        let spent = sampled(world, |minute| (40.0 + self.io.at(minute) * 900.0) * self.write_seconds.at(minute));
        world.put_counter(&format!("node_disk_write_time_seconds_total{{{device}}}"), &spent);
    }
}
