//! A folder in memory that fails where it is told to and forgets at a crash what was never synced.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::super::disk::{DiskFile, Folder};

/// When effects fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The n-th from now, once.
    Once(u64),
    /// The n-th from now and all after it.
    From(u64),
}

#[derive(Default)]
struct Inode {
    data: Vec<u8>,
    synced: Vec<u8>,
}

#[derive(Clone)]
enum Naming {
    Is(String, usize),
    Gone(String),
}

fn apply(names: &mut BTreeMap<String, usize>, naming: Naming) {
    match naming {
        Naming::Is(name, inode) => _ = names.insert(name, inode),
        Naming::Gone(name) => _ = names.remove(&name),
    }
}

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable: BTreeMap<String, usize>,
    /// What has happened to names since the folder was synced; each is durable or not by itself.
    pending: Vec<Vec<Naming>>,
    fault: Option<Fault>,
    effects: u64,
    opened: Vec<String>,
}

impl State {
    fn effect(&mut self) -> io::Result<()> {
        self.effects += 1;
        let fails = match self.fault.unwrap_or(Fault::None) {
            Fault::None => false,
            Fault::Once(at) => self.effects == at,
            Fault::From(at) => self.effects >= at,
        };
        if fails { Err(ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn name(&mut self, namings: Vec<Naming>) {
        for naming in &namings {
            apply(&mut self.names, naming.clone());
        }
        self.pending.push(namings);
    }
}

#[derive(Clone, Default)]
pub struct Disk(Arc<Mutex<State>>);

struct File(Disk, usize);

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// Counts effects anew and has them fail so.
    pub fn fail(&self, fault: Fault) {
        let mut state = self.state();
        (state.fault, state.effects) = (Some(fault), 0);
    }

    pub fn effects(&self) -> u64 {
        self.state().effects
    }

    /// Returns the names of the files opened since the last call.
    pub fn opened(&self) -> Vec<String> {
        std::mem::take(&mut self.state().opened)
    }

    /// Cuts the power: of what was not synced, `pick(n)`, a number below n, says what is there.
    pub fn crash(&self, mut pick: impl FnMut(usize) -> usize) {
        let mut state = self.state();
        let pending = std::mem::take(&mut state.pending);
        for naming in pending.into_iter().filter(|_| pick(3) > 0).flatten() {
            apply(&mut state.durable, naming);
        }
        state.names = state.durable.clone();
        for inode in &mut state.inodes {
            match pick(3) {
                0 => inode.data = inode.synced.clone(),
                1 => inode.data.truncate(inode.synced.len().max(inode.data.len() / 2)),
                _ => {}
            }
            inode.synced = inode.data.clone();
        }
        state.fault = None;
    }

    /// Returns all files, with what is in them.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        state.names.iter().map(|(name, inode)| (name.clone(), state.inodes[*inode].data.clone())).collect()
    }

    /// Puts a file there as it is, or away.
    pub fn set(&self, name: &str, data: Option<Vec<u8>>) {
        let mut state = self.state();
        let inode = data.map(|data| {
            state.inodes.push(Inode { synced: data.clone(), data });
            state.inodes.len() - 1
        });
        let name = name.to_owned();
        state.name(vec![inode.map_or(Naming::Gone(name.clone()), |inode| Naming::Is(name, inode))]);
    }
}

impl Folder for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        let inode = *state.names.get(name).ok_or(ErrorKind::NotFound)?;
        state.opened.push(name.to_owned());
        Ok(Arc::new(File(self.clone(), inode)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state();
        state.effect()?;
        state.inodes.push(Inode::default());
        let inode = state.inodes.len() - 1;
        state.name(vec![Naming::Is(name.to_owned(), inode)]);
        Ok(Arc::new(File(self.clone(), inode)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.effect()?;
        let inode = *state.names.get(from).ok_or(ErrorKind::NotFound)?;
        state.name(vec![Naming::Gone(from.to_owned()), Naming::Is(to.to_owned(), inode)]);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.effect()?;
        state.name(vec![Naming::Gone(name.to_owned())]);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.effect()?;
        state.pending.clear();
        state.durable = state.names.clone();
        Ok(())
    }
}

impl DiskFile for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.state().inodes[self.1].data.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.0.state();
        let data = &state.inodes[self.1].data;
        let rest = &data[usize::try_from(offset).unwrap().min(data.len())..];
        // Never all at once: a reader has to go on.
        let count = rest.len().min(buffer.len()).min(100);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.0.state();
        let done = state.effect();
        let bytes = if done.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        let (data, from) = (&mut state.inodes[self.1].data, usize::try_from(offset).unwrap());
        data.resize(data.len().max(from + bytes.len()), 0);
        data[from..from + bytes.len()].copy_from_slice(bytes);
        done
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.0.state();
        state.effect()?;
        state.inodes[self.1].data.resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.0.state();
        state.effect()?;
        let inode = &mut state.inodes[self.1];
        inode.synced = inode.data.clone();
        Ok(())
    }
}
