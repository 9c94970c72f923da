//! Sockets that other threads open.

use inhost_base::Endpoint;
use inhost_stack::{ConnectOptions, ListenOptions, SocketOption, UdpOptions};

use super::datagrams::RemoteUdpSocket;
use super::host::RemoteHost;
use super::listener::RemoteListener;
use super::stream::RemoteStream;
use crate::error::{ConnectError, ListenError};
use crate::host::Host;

impl RemoteHost {
    /// Calls `remote`; done when the handshake is. Dropping the future gives the attempt up.
    pub async fn connect(&self, remote: Endpoint) -> Result<RemoteStream, ConnectError> {
        self.connect_with(remote, ConnectOptions::default()).await
    }
    /// Calls `remote`, with options.
    pub async fn connect_with(
        &self,
        remote: Endpoint,
        options: ConnectOptions,
    ) -> Result<RemoteStream, ConnectError> {
        self.connect_set(remote, options, Vec::new()).await
    }
    /// Calls `remote`, with `settings` made before the first segment leaves.
    pub async fn connect_set(
        &self,
        remote: Endpoint,
        options: ConnectOptions,
        settings: Vec<SocketOption>,
    ) -> Result<RemoteStream, ConnectError> {
        let connect = move |host: Host| async move {
            Ok(host.connect_set(remote, options, &settings).await?.into_remote())
        };
        self.call(connect).await.unwrap_or(Err(ConnectError::Stopped))
    }
    /// Listens at `local`.
    pub async fn listen(
        &self,
        local: Endpoint,
        options: ListenOptions,
    ) -> Result<RemoteListener, ListenError> {
        self.call(move |host| async move { Ok(RemoteListener::start(host.listen(local, options)?)) })
            .await
            .unwrap_or(Err(ListenError::Stopped))
    }
    /// Listens at `local` without waiting, with `settings` that the accepted connections inherit; see
    /// [`RemoteHost::call_now`].
    pub fn listen_now(
        &self,
        local: Endpoint,
        options: ListenOptions,
        settings: Vec<SocketOption>,
    ) -> Result<RemoteListener, ListenError> {
        let listen = move |host: &Host| {
            let listener = host.listen(local, options)?;
            for option in settings {
                // An option that a listener has not has no effect.
                let _ = listener.set_option(option);
            }
            Ok(RemoteListener::start(listener))
        };
        self.call_now(listen).unwrap_or(Err(ListenError::Stopped))
    }
    /// Opens a UDP socket at `local`.
    pub async fn udp(&self, local: Endpoint, options: UdpOptions) -> Result<RemoteUdpSocket, ListenError> {
        let open = move |host: Host| async move {
            Ok(RemoteUdpSocket::start(&host, host.udp(local, options.clone())?, &options))
        };
        self.call(open).await.unwrap_or(Err(ListenError::Stopped))
    }
}
