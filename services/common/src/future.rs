//! Futures of services.

use std::future::Future;
use std::pin::Pin;

/// A future that stays on its thread.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;
