//! Artificial host load: threads that multiply two matrices without sleeping (VPI §2.5).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Rows and columns of a matrix.
const SIZE: usize = 48;

/// Threads that load the processor until this is dropped.
#[derive(Debug)]
pub struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts so many threads; fewer where the system has no more.
    pub fn start(units: u8) -> Load {
        let is_over = Arc::new(AtomicBool::new(false));
        let threads = (0..units).map_while(|unit| {
            let is_over = is_over.clone();
            let name = format!("load-{unit}");
            std::thread::Builder::new().name(name).spawn(move || multiply(&is_over)).ok()
        });
        Load { threads: threads.collect(), is_over }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn multiply(is_over: &AtomicBool) {
    let mut left = vec![[1.0_f64; SIZE]; SIZE];
    let right = vec![[0.5_f64; SIZE]; SIZE];
    while !is_over.load(Ordering::Relaxed) {
        let mut product = vec![[0.0_f64; SIZE]; SIZE];
        for (row, into) in left.iter().zip(&mut product) {
            for (factor, terms) in row.iter().zip(&right) {
                into.iter_mut().zip(terms).for_each(|(sum, term)| *sum += factor * term);
            }
        }
        // Kept in range, and used, so that it is computed.
        product.iter_mut().flatten().for_each(|value| *value /= SIZE as f64 / 2.0);
        left = std::hint::black_box(product);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_end_with_the_load() {
        let load = super::Load::start(2);
        assert_eq!(load.threads.len(), 2);
        let is_over = load.is_over.clone();
        drop(load);
        assert_eq!(std::sync::Arc::strong_count(&is_over), 1);
    }
}
