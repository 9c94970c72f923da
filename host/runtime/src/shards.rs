//! One host on several cores: shards that share its addresses and nothing else.
//!
//! Each shard has a thread, a runtime, a stack and its part of the memory, and each link has a queue for each of them. A
//! flow belongs to one shard ([`inhost_stack::Share`]); the device mostly brings its frames to that shard's queue, as TUN
//! does once the flow has left by it. A frame that comes elsewhere, the first of a flow for instance, is handed over
//! through a bounded inbox: the only thing by which shards meet.

mod messages;

use crate::clock::entropy;
use crate::runtime::{AddLinkError, Runtime};
use inhost_base::LinkId;
use inhost_link::Driver;
use inhost_stack::{InterfaceConfig, Share, StackConfig};
use messages::{Exchange, Steered};
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// The most shards of a host.
pub const MAX_SHARDS: u16 = 64;

/// The threads of a host's shards.
#[derive(Debug)]
pub struct Shards {
    threads: Vec<JoinHandle<io::Result<()>>>,
    exchange: Arc<Exchange>,
}

/// One of them, on its own thread.
pub struct Shard {
    runtime: Runtime,
    share: Option<Share>,
    exchange: Arc<Exchange>,
    index: u16,
    links: usize,
}

impl Shards {
    /// Starts `count` shards, at most [`MAX_SHARDS`], that divide what `config` allows. `life` is what each does on its
    /// thread: it adds its links, all shards the same in the same order, listens at the same ports, and runs the runtime.
    ///
    /// ```no_run
    /// use inhost_base::{Cidr, Endpoint, Ipv4Addr};
    /// use inhost_link::{Tunnel, TunnelConfig};
    /// use inhost_runtime::{Shards, interface};
    /// use inhost_stack::{ListenOptions, StackConfig};
    /// use tokio::io::AsyncWriteExt;
    ///
    /// let shards = Shards::start(2, &StackConfig::default(), |mut shard| {
    ///     let config = TunnelConfig { multi_queue: true, ..TunnelConfig::new("inhost0", false) };
    ///     let driver = Box::new(Tunnel::open(config).map_err(std::io::Error::other)?);
    ///     let address = Cidr::new(Ipv4Addr::new(10, 1, 0, 2), 24).map_err(std::io::Error::other)?;
    ///     let link = interface("inhost0", &*driver).with_address(address);
    ///     shard.add_link(link, driver).map_err(std::io::Error::other)?;
    ///     let host = shard.runtime().host().clone();
    ///     let here = Endpoint::new(Ipv4Addr::UNSPECIFIED, 13);
    ///     let listener = host.listen(here, ListenOptions::default()).map_err(std::io::Error::other)?;
    ///     shard.runtime().run(async {
    ///         while let Ok(mut caller) = listener.accept().await {
    ///             let _ = caller.write_all(b"a quarter past").await;
    ///         }
    ///     })
    /// })?;
    /// shards.join()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        count: u16,
        config: &StackConfig,
        life: impl Fn(Shard) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Shards> {
        let seed = entropy()?;
        let word = |at: usize| seed[at..at + 8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let parts = config.shares(count.clamp(1, MAX_SHARDS), [word(0), word(8)]);
        let exchange = Arc::new(Exchange::new(parts.len()));
        let life = Arc::new(life);
        let mut threads = Vec::new();
        for (config, index) in parts.into_iter().zip(0..) {
            let (life, exchange) = (life.clone(), exchange.clone());
            let begin = move || {
                let share = config.share;
                let runtime = Runtime::new(config)?;
                exchange.register(index, runtime.host().doorbell().clone());
                life(Shard { runtime, share, exchange, index, links: 0 })
            };
            threads.push(Builder::new().name(format!("shard {index}")).spawn(begin)?);
        }
        Ok(Shards { threads, exchange })
    }
    /// Frames that were handed from one shard to another so far, and those for which the inbox was full.
    pub fn handed_over(&self) -> (u64, u64) {
        self.exchange.counts()
    }
    /// Waits until every shard's life is over; the first error, where there is one.
    pub fn join(self) -> io::Result<()> {
        let mut all = Ok(());
        for thread in self.threads {
            let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a shard's thread failed")));
            all = all.and(ended);
        }
        all
    }
}

impl Shard {
    /// Its number, from 0 on.
    pub fn index(&self) -> u16 {
        self.index
    }
    /// The loop that it runs, and its host.
    pub fn runtime(&mut self) -> &mut Runtime {
        &mut self.runtime
    }
    /// Gives the shard its queue of a link, which the other shards give themselves as well.
    pub fn add_link(
        &mut self,
        config: InterfaceConfig,
        driver: Box<dyn Driver>,
    ) -> Result<LinkId, AddLinkError> {
        let host = self.runtime.host().clone();
        let driver = match self.share {
            None => driver,
            Some(share) => Box::new(Steered::new(driver, share, self.exchange.link(self.links))),
        };
        self.links += 1;
        self.runtime.add_link(&host, config, driver)
    }
}
