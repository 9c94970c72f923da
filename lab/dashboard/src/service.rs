//! The page as a service of a host.

use std::cell::OnceCell;
use std::rc::Rc;

use inhost_common::service::{
    Description, Doors, HostFiles, Notice, Problem, Reach, Service, ServiceContext, ServiceSession,
};
use inhost_common::{Admission, LocalFuture, Transport, session_log};
use inhost_web::{Config, Request, Response, Site, StatusCode, server};

use crate::caller;
use crate::section::Section;
use crate::views::Views;

/// Bytes of a capture that may be dropped on the page.
const CAPTURE_BYTES: usize = 64 << 20;

/// The running page.
pub struct Dashboard {
    gate: Rc<Gate>,
    doors: Doors,
    section: Section,
}

impl Dashboard {
    /// Shows the host, once its instruments are there; before that, requests are answered with 503.
    pub fn show(&self, views: &Views) {
        views.measure();
        let _ = self.gate.views.set(Rc::new(views.clone()));
    }
}

/// Lets in who may see the host: who knows the token, or, where there is none, the user who runs it. Frames have what
/// others type.
struct Gate {
    views: OnceCell<Rc<Views>>,
    has_token: bool,
}

const REFUSED: &str = "this page is for the user who runs the host, on this machine; a token in [dashboard] of host.toml opens \
                       it to others";

impl Site for Gate {
    fn respond(self: Rc<Self>, request: Request) -> LocalFuture<Response> {
        Box::pin(async move {
            let peer = request.peer();
            if !self.has_token && !blocking::unblock(move || caller::is_own(peer)).await {
                return Response::problem(StatusCode::FORBIDDEN, REFUSED);
            }
            match self.views.get() {
                Some(views) => views.clone().respond(request).await,
                None => Response::problem(StatusCode::SERVICE_UNAVAILABLE, "the host is starting"),
            }
        })
    }
}

impl Service for Dashboard {
    const NAME: &'static str = "dashboard";
    type Section = Section;
    type Prepared = ();

    fn check(section: &Section) -> Result<(), Problem> {
        section.check()
    }
    fn is_enabled(section: &Section) -> bool {
        section.enabled
    }
    fn prepare(_: &Section, _: &HostFiles) -> Result<(), Problem> {
        Ok(())
    }
    fn start(section: &Section, (): (), context: &ServiceContext) -> Result<Dashboard, Problem> {
        let host = &context.host;
        let gate = Rc::new(Gate { views: OnceCell::new(), has_token: section.token.is_some() });
        let mut pages = Config::default();
        pages.hosts.clone_from(&section.hosts);
        pages.token.clone_from(&section.token);
        pages.unix_time = Some(context.unix_time);
        pages.body_bytes = CAPTURE_BYTES;
        let admission = Admission::new(section.limits()?);
        let doors = Doors::new(Self::NAME, host, &context.callers, admission, session_log!("dashboard"));
        doors.listen(section.port, server::sessions(host, gate.clone(), pages))?;
        Ok(Dashboard { gate, doors, section: section.clone() })
    }
    fn reload(&self, section: &Section, (): ()) -> Result<(), Problem> {
        self.doors.admission().set_limits(section.limits()?);
        Ok(())
    }
    fn effect(key: &str) -> Option<&'static str> {
        key.starts_with("limits").then_some("at once")
    }
    fn describe(&self) -> Description {
        let section = &self.section;
        let page = |at: std::net::SocketAddr| format!("http://{at}/");
        let notice = section.token.as_ref().map(|token| Notice {
            on_terminal: format!("the dashboard asks for a token: add ?token={token} to its address"),
            elsewhere: "the dashboard asks for the token of [dashboard]".into(),
        });
        Description {
            summary: format!("port {}", section.port),
            reach: vec![Reach::new(Transport::Tcp, section.port, "see why connections are slow", page)],
            notice,
        }
    }
    fn doors(&self) -> &Doors {
        &self.doors
    }
    /// None: a visitor of the page is not listed.
    fn sessions(&self) -> Vec<ServiceSession> {
        Vec::new()
    }
}
